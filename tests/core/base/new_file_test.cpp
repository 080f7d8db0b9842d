// What is written: whole or not at all, in place where there is nothing to rename, never where
// another user's link leads.
#include "files/new_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <thread>

#include "../../scratch_folder.hpp"

namespace bitnet::files {
namespace {

namespace fs = std::filesystem;

constexpr uid_t nobody = 65534;

std::string content(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

struct stat facts(const fs::path& path) {
  struct stat s{};
  EXPECT_EQ(::lstat(path.c_str(), &s), 0) << path;
  return s;
}

class written : public testing::Test {
 protected:
  [[nodiscard]] std::size_t files_in_folder() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  test::scratch_folder scratch_;
  fs::path folder_ = scratch_.path();
};

TEST_F(written, a_new_file_has_the_mode_of_the_umask) {
  const mode_t before = ::umask(027);
  EXPECT_TRUE(write_file(folder_ / "new", "text"));
  ::umask(before);
  EXPECT_EQ(content(folder_ / "new"), "text");
  EXPECT_EQ(facts(folder_ / "new").st_mode & 07777U, 0640U);
  EXPECT_EQ(files_in_folder(), 1U);
}

TEST_F(written, an_old_file_gives_its_mode_and_stays_until_the_end) {
  const fs::path path = folder_ / "old";
  std::ofstream(path) << "old";
  ASSERT_EQ(::chmod(path.c_str(), 0604), 0);
  {
    auto file = new_file::create(path);
    ASSERT_TRUE(file);
    EXPECT_TRUE(file->write("half"));
    EXPECT_EQ(content(path), "old");
  }
  EXPECT_EQ(content(path), "old") << "never finished";
  EXPECT_TRUE(write_file(path, "new"));
  EXPECT_EQ(content(path), "new");
  EXPECT_EQ(facts(path).st_mode & 07777U, 0604U);
  EXPECT_EQ(files_in_folder(), 1U);
}

TEST_F(written, an_old_file_keeps_its_owner) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  const fs::path path = folder_ / "old";
  std::ofstream(path) << "old";
  ASSERT_EQ(::chown(path.c_str(), nobody, nobody), 0);
  EXPECT_TRUE(write_file(path, "new"));
  EXPECT_EQ(facts(path).st_uid, nobody);
  EXPECT_EQ(facts(path).st_gid, nobody);
}

TEST_F(written, a_full_disk_leaves_the_old_file) {
  const fs::path path = folder_ / "old";
  std::ofstream(path) << "old";
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{1000, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto done = write_file(path, std::string(5000, 'x'));
  ::setrlimit(RLIMIT_FSIZE, &before);
  (void)std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().error, EFBIG);
  EXPECT_EQ(content(path), "old");
  EXPECT_EQ(files_in_folder(), 1U);
}

TEST_F(written, an_existing_file_is_rejected_without_overwrite) {
  const fs::path path = folder_ / "old";
  std::ofstream(path) << "old";
  const auto done = write_file(path, "new", {.overwrite = false});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().error, EEXIST);
  auto late = new_file::create(folder_ / "late", {.overwrite = false});
  ASSERT_TRUE(late);
  std::ofstream(folder_ / "late") << "another process was faster";
  EXPECT_FALSE(late->finish());
  EXPECT_EQ(content(folder_ / "late"), "another process was faster");
}

TEST_F(written, a_pipe_gets_the_bytes_and_stays) {
  const fs::path path = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  std::string got;
  std::thread reader([&] { got = content(path); });
  EXPECT_TRUE(write_file(path, "through the pipe"));
  reader.join();
  EXPECT_EQ(got, "through the pipe");
  EXPECT_TRUE(S_ISFIFO(facts(path).st_mode));
  EXPECT_EQ(files_in_folder(), 1U);
}

TEST_F(written, a_pipe_in_the_place_of_a_cache_is_rejected_at_once) {
  const fs::path path = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const auto done = write_file(path, "x", {.regular_only = true});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().text, "it is no regular file; remove it");
  EXPECT_TRUE(S_ISFIFO(facts(path).st_mode));
}

TEST_F(written, a_device_gets_the_bytes_and_stays) {
  const fs::path path = folder_ / "null";
  if (::mknod(path.c_str(), S_IFCHR | 0666, makedev(1, 3)) != 0)
    GTEST_SKIP() << "device nodes cannot be made here";
  if (const descriptor usable(::open(path.c_str(), O_WRONLY | O_CLOEXEC)); !usable)
    GTEST_SKIP() << "device nodes cannot be opened here";
  EXPECT_TRUE(write_file(path, "gone"));
  EXPECT_TRUE(S_ISCHR(facts(path).st_mode));
}

TEST_F(written, an_open_file_is_written_in_place) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  EXPECT_TRUE(write_file("/proc/self/fd/" + std::to_string(ends[1]), "to a pipe"));
  char got[16] = {};
  EXPECT_EQ(::read(ends[0], got, sizeof got), 9);
  EXPECT_STREQ(got, "to a pipe");
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_F(written, a_folder_or_nothing_is_rejected) {
  for (const char* path : {"", ".", "..", "/", "/tmp/", "/nonexistent/file"})
    EXPECT_FALSE(write_file(path, "x")) << path;
  EXPECT_FALSE(write_file(folder_, "x"));
  std::ofstream(folder_ / "file") << "old";
  const auto below = write_file(folder_ / "file" / "name", "x");
  ASSERT_FALSE(below);
  EXPECT_EQ(below.error().error, ENOTDIR);
}

TEST_F(written, own_links_stay_and_lead_to_the_file) {
  std::ofstream(folder_ / "target") << "old";
  fs::create_directory(folder_ / "deep");
  fs::create_symlink("../target", folder_ / "deep" / "one");
  fs::create_symlink("deep/one", folder_ / "two");
  EXPECT_TRUE(write_file(folder_ / "two", "new"));
  EXPECT_EQ(content(folder_ / "target"), "new");
  EXPECT_TRUE(S_ISLNK(facts(folder_ / "two").st_mode));
  fs::create_symlink("nothing-yet", folder_ / "dangling");
  EXPECT_TRUE(write_file(folder_ / "dangling", "new"));
  EXPECT_EQ(content(folder_ / "nothing-yet"), "new");
  fs::create_symlink("ring", folder_ / "ring");
  const auto ring = write_file(folder_ / "ring", "x");
  ASSERT_FALSE(ring);
  EXPECT_EQ(ring.error().error, ELOOP);
}

TEST_F(written, links_of_others_are_not_followed) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make links for others";
  fs::create_directory(folder_ / "mine");
  std::ofstream(folder_ / "mine" / "file") << "old";
  struct row {
    const char* link;
    const char* target;
    const char* asked;
    const char* why;
  };
  const row rows[] = {{"last", "mine/file", "last", "as the file itself"},
                      {"above", "mine", "above/file", "as a folder above"},
                      {"new", "mine/new", "new", "to what is not there yet"}};
  for (const row& r : rows) {
    fs::create_symlink(r.target, folder_ / r.link);
    ASSERT_EQ(::lchown((folder_ / r.link).c_str(), nobody, nobody), 0);
    const auto done = write_file(folder_ / r.asked, "new");
    ASSERT_FALSE(done) << r.why;
    EXPECT_NE(done.error().text.find("is a link of uid 65534"), std::string::npos)
        << done.error().text;
  }
  EXPECT_EQ(content(folder_ / "mine" / "file"), "old");
  EXPECT_FALSE(fs::exists(folder_ / "mine" / "new"));
}

// As a user: the child becomes one.
TEST_F(written, own_links_into_folders_of_others_are_not_followed) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become a user";
  constexpr uid_t me = 12345;
  for (const char* name : {"mine", "theirs"}) {
    fs::create_directory(folder_ / name);
    ASSERT_EQ(::chmod((folder_ / name).c_str(), 0777), 0);
  }
  ASSERT_EQ(::chmod(folder_.c_str(), 0777), 0);
  ASSERT_EQ(::chown((folder_ / "mine").c_str(), me, me), 0);
  ASSERT_EQ(::chown((folder_ / "theirs").c_str(), nobody, nobody), 0);
  const auto as_user = [&](const fs::path& target) {
    const fs::path link = folder_ / "mine" / "link";
    fs::remove(link);
    fs::create_symlink(target, link);
    EXPECT_EQ(::lchown(link.c_str(), me, me), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      if (::setresgid(me, me, me) != 0 || ::setresuid(me, me, me) != 0) ::_exit(9);
      const auto done = write_file(link / "x", "x");
      ::_exit(done                                                                 ? 0
              : done.error().text.find("folder of uid 65534") != std::string::npos ? 1
                                                                                   : 2);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WEXITSTATUS(status);
  };
  EXPECT_EQ(as_user(folder_ / "theirs"), 1);
  fs::create_directory(folder_ / "mine" / "deep");
  ASSERT_EQ(::chown((folder_ / "mine" / "deep").c_str(), me, me), 0);
  EXPECT_EQ(as_user(folder_ / "mine" / "deep"), 0);
}

TEST_F(written, a_file_that_may_not_be_written_is_not_replaced) {
  std::ofstream(folder_ / "old") << "old";
  ASSERT_EQ(::chmod((folder_ / "old").c_str(), 0444), 0);
  ASSERT_EQ(::chmod(folder_.c_str(), 0777), 0);
  const pid_t child = ::fork();
  if (child == 0) {  // root may write everything
    if (::geteuid() == 0 && ::setresuid(nobody, nobody, nobody) != 0) ::_exit(9);
    const auto done = write_file(folder_ / "old", "new");
    ::_exit(done ? 0 : done.error().error == EACCES ? 1 : 2);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 1);
  EXPECT_EQ(content(folder_ / "old"), "old");
}

TEST_F(written, a_file_created_under_the_name_meanwhile_is_kept) {
  auto file = new_file::create(folder_ / "name");
  ASSERT_TRUE(file);
  ASSERT_EQ(::mkfifo((folder_ / "name").c_str(), 0600), 0);
  EXPECT_FALSE(file->finish());
  EXPECT_TRUE(S_ISFIFO(facts(folder_ / "name").st_mode));
}

}  // namespace
}  // namespace bitnet::files

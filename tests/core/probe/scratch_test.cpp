// Folders for what drivers write while they are probed: each is one child's alone, and those of
// killed processes are found.

#include "probe/scratch.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "../../fakes/loader_fixture.hpp"

namespace bitnet::probe {
namespace {

namespace fs = std::filesystem;
using test::folder;

mode_t mode_of(const fs::path& path) {
  struct stat facts{};
  EXPECT_EQ(lstat(path.c_str(), &facts), 0) << path;
  return facts.st_mode & 07777;
}

TEST(scratch, is_private_empty_and_gone_with_all_that_is_in_it) {
  const folder place;
  fs::path made;
  {
    const scratch_folder one(place.path());
    const scratch_folder other(place.path());
    made = one.path();
    ASSERT_EQ(one.problem(), "");
    EXPECT_NE(made, other.path());
    EXPECT_EQ(made.parent_path(), place.path());
    EXPECT_EQ(mode_of(made), 0700U);
    EXPECT_TRUE(fs::is_empty(made));
    fs::create_directories(made / "a/b");
    std::ofstream(made / "a/b/c") << "compiled";
    fs::create_symlink(place.path(), made / "up");
    place.write("kept", "");
  }
  EXPECT_FALSE(fs::exists(made));
  EXPECT_TRUE(fs::exists(place.path() / "kept")) << "a link was followed";
}

TEST(scratch, a_failed_creation_has_a_reason) {
  const folder place;
  const scratch_folder none(place.path() / "missing");
  EXPECT_EQ(none.path(), "");
  EXPECT_NE(none.problem().find("missing: No such file"), std::string::npos) << none.problem();
}

TEST(scratch, a_folder_in_use_is_not_removed) {
  const folder place;
  scratch_folder one(place.path());
  std::ofstream(one.path() / "file") << "in use";
  sweep_scratch_folders(place.path());
  EXPECT_TRUE(fs::exists(one.path() / "file"));
}

TEST(scratch, folders_of_killed_processes_are_removed) {
  const folder place;
  const pid_t child = fork();
  if (child == 0) {
    const scratch_folder one(place.path());
    std::ofstream(one.path() / "file") << "left";
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  ASSERT_FALSE(fs::is_empty(place.path())) << "there is nothing to sweep";
  sweep_scratch_folders(place.path());
  EXPECT_TRUE(fs::is_empty(place.path()));
}

TEST(scratch, other_files_are_not_removed) {
  const folder place;
  place.write("elsewhere/file", "");
  fs::create_symlink(place.path() / "elsewhere", place.path() / "bitnet-probe-linked");
  place.write("bitnet-probe-afile1", "a file");
  for (const char* name : {"bitnet-probe-toolong", "bitnet-probe-", "bitnet-other-abcdef"}) {
    fs::create_directory(place.path() / name);
    chmod((place.path() / name).c_str(), 0700);
  }
  fs::create_directory(place.path() / "bitnet-probe-public");
  chmod((place.path() / "bitnet-probe-public").c_str(), 0755);
  if (geteuid() == 0) {
    constexpr uid_t nobody = 65534;
    fs::create_directory(place.path() / "bitnet-probe-theirs");
    chmod((place.path() / "bitnet-probe-theirs").c_str(), 0700);
    ASSERT_EQ(chown((place.path() / "bitnet-probe-theirs").c_str(), nobody, nobody), 0);
  }
  const auto entries = [&] {
    return std::distance(fs::recursive_directory_iterator(place.path()),
                         fs::recursive_directory_iterator());
  };
  const auto before = entries();
  sweep_scratch_folders(place.path());
  EXPECT_EQ(entries(), before);
  sweep_scratch_folders(place.path() / "missing");
}

TEST(scratch, only_trusted_places_are_taken) {
  const folder place;
  EXPECT_EQ(scratch_place(place.path()), place.path());
  fs::create_directory(place.path() / "open");
  chmod((place.path() / "open").c_str(), 0777);
  EXPECT_EQ(scratch_place(place.path() / "open"), "/tmp") << "everybody may rename there";
  chmod((place.path() / "open").c_str(), 01777);
  EXPECT_EQ(scratch_place(place.path() / "open"), place.path() / "open");
  EXPECT_EQ(scratch_place(place.path() / "missing"), "/tmp");
}

}  // namespace
}  // namespace bitnet::probe

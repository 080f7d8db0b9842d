// Whose files may be loaded. One row, one owner or mode.

#include "plugin/trust/trust.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "../../fakes/loader_fixture.hpp"

namespace bitnet::plugin {
namespace {

using test::folder;

struct row {
  const char* why;
  mode_t file_mode, directory_mode;
  code want;
  std::vector<const char*> mentions;  // of the reason and the hint
};

std::ostream& operator<<(std::ostream& out, const row& r) {
  return out << r.why;
}

class trust : public testing::TestWithParam<row> {};

TEST_P(trust, follows_modes) {
  const row& r = GetParam();
  SCOPED_TRACE(r.why);
  const folder f;
  const auto file = f.write("d/plugin.so", "bytes", r.file_mode);
  ASSERT_EQ(chmod(file.parent_path().c_str(), r.directory_mode), 0);
  const auto opened = open_trusted(file);
  if (r.want == code::ok) {
    ASSERT_TRUE(opened.has_value()) << opened.error().reason;
    EXPECT_EQ(opened->path, file);
    EXPECT_EQ(opened->identity.size_bytes, 5U);
    EXPECT_EQ(read_all(*opened, 100).value_or(""), "bytes");
    return;
  }
  ASSERT_FALSE(opened.has_value());
  EXPECT_EQ(code_text(opened.error().code), code_text(r.want));
  EXPECT_EQ(opened.error().status, BITNET_REJECTED);
  for (const char* text : r.mentions)
    EXPECT_NE((opened.error().reason + "; " + opened.error().advice()).find(text),
              std::string::npos)
        << "'" << text << "' is not in: " << opened.error().reason << "; "
        << opened.error().advice();
}

const row rows[] = {
    {"as installed", 0644, 0755, code::ok, {}},
    {"executable, as linkers leave it", 0755, 0755, code::ok, {}},
    {"private", 0600, 0700, code::ok, {}},
    {"a sticky directory like /tmp is fine", 0644, 01777, code::ok, {}},
    {"world-writable file",
     0666,
     0755,
     code::trust_mode,
     {"d/plugin.so (mode 0666, owner uid ", "must not be writable by everybody",
      "chmod go-w '/tmp/"}},
    {"group-writable file", 0664, 0755, code::trust_mode, {"must not be writable by its group"}},
    {"setuid", 04755, 0755, code::trust_mode, {"setuid", "chmod ug-s '"}},
    {"setgid", 02755, 0755, code::trust_mode, {"setgid"}},
    {"world-writable directory", 0644, 0777, code::trust_mode, {"/d (mode 0777", "everybody"}},
    {"group-writable directory", 0644, 0775, code::trust_mode, {"/d (mode 0775", "its group"}},
};

INSTANTIATE_TEST_SUITE_P(rows, trust, testing::ValuesIn(rows));

constexpr uid_t stranger = 65534;

TEST(trust_owner, a_strangers_file_is_rejected) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  const folder f;
  const auto file = f.write("plugin.so", "bytes");
  ASSERT_EQ(chown(file.c_str(), stranger, stranger), 0);
  const auto opened = open_trusted(file);
  ASSERT_FALSE(opened.has_value());
  EXPECT_EQ(opened.error().code, code::trust_owner);
  EXPECT_NE(opened.error().reason.find("owner uid 65534"), std::string::npos)
      << opened.error().reason;
  EXPECT_NE(opened.error().reason.find("must belong to root"), std::string::npos);
  EXPECT_TRUE(opened.error().hint.starts_with("chown root '")) << opened.error().hint;
}

TEST(trust_owner, a_file_in_a_strangers_directory_is_rejected) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  const folder f;
  const auto file = f.write("d/e/plugin.so", "bytes");
  ASSERT_EQ(chown((f.path() / "d").c_str(), stranger, stranger), 0);
  const auto opened = open_trusted(file);
  ASSERT_FALSE(opened.has_value());
  EXPECT_EQ(opened.error().code, code::trust_owner);
  EXPECT_NE(opened.error().reason.find("/d (mode"), std::string::npos) << opened.error().reason;
}

TEST(trust_kind, rejects_all_but_regular_files) {
  const folder f;
  EXPECT_EQ(open_trusted(f.path()).error().code, code::trust_kind);
  EXPECT_EQ(open_trusted("/dev/zero").error().code, code::trust_kind);
  const auto pipe = f.path() / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(open_trusted(pipe).error().code, code::trust_kind) << "and it must not block";
}

TEST(trust_kind, a_missing_file_is_unavailable) {
  const auto opened = open_trusted("/nowhere/plugin.so");
  ASSERT_FALSE(opened.has_value());
  EXPECT_EQ(opened.error().code, code::trust_missing);
  EXPECT_EQ(opened.error().status, BITNET_UNAVAILABLE) << "absent is not broken";
  EXPECT_NE(opened.error().reason.find("/nowhere/plugin.so"), std::string::npos);
  EXPECT_EQ(trust_directory("/nowhere").error().code, code::trust_missing);
}

TEST(trust_link, the_target_is_what_counts) {
  const folder f;
  const auto file = f.write("real/plugin.so", "bytes", 0666);
  std::filesystem::create_symlink(file, f.path() / "link.so");
  const auto rejected = open_trusted(f.path() / "link.so");
  ASSERT_FALSE(rejected.has_value());
  EXPECT_EQ(rejected.error().code, code::trust_mode);
  ASSERT_EQ(chmod(file.c_str(), 0644), 0);
  const auto opened = open_trusted(f.path() / "link.so");
  ASSERT_TRUE(opened.has_value());
  EXPECT_EQ(opened->path, file);
}

TEST(trust_link, its_owner_decides_where_it_leads) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  const folder f;
  const auto file = f.write("real/plugin.so", "bytes");
  std::filesystem::create_directory_symlink("real", f.path() / "way");
  const auto opened = open_trusted(f.path() / "way/plugin.so");
  ASSERT_TRUE(opened.has_value()) << opened.error().reason;
  EXPECT_EQ(opened->path, file);
  ASSERT_EQ(lchown((f.path() / "way").c_str(), stranger, stranger), 0);
  const auto rejected = open_trusted(f.path() / "way/plugin.so");
  ASSERT_FALSE(rejected.has_value()) << "its owner could point it elsewhere at any time";
  EXPECT_EQ(rejected.error().code, code::trust_owner);
  EXPECT_NE(rejected.error().reason.find("/way (mode"), std::string::npos)
      << rejected.error().reason;
}

TEST(trust_link, leads_out_and_back_and_in_circles) {
  const folder f;
  const auto file = f.write("a/b/plugin.so", "bytes");
  std::filesystem::create_symlink("../../a/./b//plugin.so", f.path() / "a/b/up.so");
  std::filesystem::create_symlink(f.path() / "a/b/up.so", f.path() / "whole.so");
  std::filesystem::create_symlink("round.so", f.path() / "round.so");
  EXPECT_EQ(open_trusted(f.path() / "whole.so")->path, file);
  EXPECT_EQ(open_trusted(f.path() / "a/../a/b/plugin.so")->path, file);
  EXPECT_EQ(open_trusted("/../../" + file.string())->path, file);
  const auto round = open_trusted(f.path() / "round.so");
  ASSERT_FALSE(round.has_value());
  EXPECT_EQ(round.error().code, code::trust_missing);
  EXPECT_NE(round.error().reason.find("round.so"), std::string::npos);
  EXPECT_EQ(open_trusted(file / "below").error().code, code::trust_missing);
}

// The folder is swapped for another again and again; what is opened must be what was checked.
TEST(trust_race, nothing_is_swapped_in_between) {
  const folder f;
  f.write("good/plugin.so", "good");
  f.write("evil/plugin.so", "evil", 0666);  // would be rejected
  std::filesystem::create_directory_symlink("good", f.path() / "now");
  std::atomic<bool> done = false;
  std::thread swapper([&] {
    for (bool good = false; !done; good = !good) {
      std::filesystem::create_directory_symlink(good ? "good" : "evil", f.path() / "next");
      std::filesystem::rename(f.path() / "next", f.path() / "now");
    }
  });
  int opened = 0;
  for (int i = 0; i < 2000; ++i)
    if (const auto file = open_trusted(f.path() / "now/plugin.so"); file) {
      ++opened;
      EXPECT_EQ(read_all(*file, 100).value_or(""), "good");
      EXPECT_EQ(file->path, f.path() / "good/plugin.so");
    }
  done = true;
  swapper.join();
  EXPECT_GT(opened, 0);
}

TEST(trust_read, has_a_limit_and_notices_changes) {
  const folder f;
  const auto file = f.write("plugin.so", "0123456789");
  const auto opened = open_trusted(file);
  ASSERT_TRUE(opened.has_value());
  EXPECT_EQ(read_all(*opened, 10).value_or(""), "0123456789");
  const auto rejected = read_all(*opened, 9);
  ASSERT_FALSE(rejected.has_value());
  EXPECT_EQ(rejected.error().code, code::manifest_size);
  std::filesystem::resize_file(file, 4);
  const auto shorter = read_all(*opened, 10);
  ASSERT_FALSE(shorter.has_value());
  EXPECT_EQ(shorter.error().code, code::manifest_unreadable);
  EXPECT_NE(open_trusted(file)->identity, opened->identity);
}

}  // namespace
}  // namespace bitnet::plugin

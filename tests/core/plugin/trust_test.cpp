// Whose files may be loaded. One row, one owner or mode.

#include "plugin/trust.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <ostream>
#include <string>
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

TEST(trust_owner, a_strangers_file_is_refused) {
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

TEST(trust_owner, so_is_a_file_in_a_strangers_directory) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  const folder f;
  const auto file = f.write("d/e/plugin.so", "bytes");
  ASSERT_EQ(chown((f.path() / "d").c_str(), stranger, stranger), 0);
  const auto opened = open_trusted(file);
  ASSERT_FALSE(opened.has_value());
  EXPECT_EQ(opened.error().code, code::trust_owner);
  EXPECT_NE(opened.error().reason.find("/d (mode"), std::string::npos) << opened.error().reason;
}

TEST(trust_kind, only_regular_files) {
  const folder f;
  EXPECT_EQ(open_trusted(f.path()).error().code, code::trust_kind);
  EXPECT_EQ(open_trusted("/dev/zero").error().code, code::trust_kind);
  const auto pipe = f.path() / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(open_trusted(pipe).error().code, code::trust_kind) << "and it must not block";
}

TEST(trust_kind, what_is_not_there) {
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
  const auto refused = open_trusted(f.path() / "link.so");
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, code::trust_mode);
  ASSERT_EQ(chmod(file.c_str(), 0644), 0);
  const auto opened = open_trusted(f.path() / "link.so");
  ASSERT_TRUE(opened.has_value());
  EXPECT_EQ(opened->path, file);
}

TEST(trust_read, has_a_limit_and_notices_changes) {
  const folder f;
  const auto file = f.write("plugin.so", "0123456789");
  const auto opened = open_trusted(file);
  ASSERT_TRUE(opened.has_value());
  EXPECT_EQ(read_all(*opened, 10).value_or(""), "0123456789");
  const auto refused = read_all(*opened, 9);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, code::manifest_size);
  std::filesystem::resize_file(file, 4);
  const auto shorter = read_all(*opened, 10);
  ASSERT_FALSE(shorter.has_value());
  EXPECT_EQ(shorter.error().code, code::manifest_unreadable);
  EXPECT_NE(open_trusted(file)->identity, opened->identity);
}

}  // namespace
}  // namespace bitnet::plugin

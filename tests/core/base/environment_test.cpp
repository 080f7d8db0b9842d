// What the library reads from its environment, and when it does not listen.

#include "base/environment.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <ostream>
#include <string>
#include <vector>

namespace bitnet::environment {
namespace {

struct privilege_row {
  const char* why;
  bool wanted, raised;
  uint32_t effective_uid;
  const char* rejection;  // "" if the user's folders count
};

std::ostream& operator<<(std::ostream& out, const privilege_row& r) {
  return out << r.why;
}

class privilege : public testing::TestWithParam<privilege_row> {};

TEST_P(privilege, decides_which_settings_name_code) {
  const privilege_row& r = GetParam();
  const std::string rejected = user_places_rejected(r.wanted, r.raised, r.effective_uid);
  if (std::string_view(r.rejection).empty())
    EXPECT_EQ(rejected, "");
  else
    EXPECT_NE(rejected.find(r.rejection), std::string::npos) << rejected;
}

const privilege_row privileges[] = {
    {"a user", false, false, 1000, ""},
    {"a user with the option", true, false, 1000, ""},
    {"root", false, false, 0, "root does not listen"},
    {"root with the option on the command line", true, false, 0, ""},
    {"setuid or file capabilities", false, true, 1000, "raised privileges"},
    {"setuid root", false, true, 0, "raised privileges"},
    {"raised privileges cannot be talked out of it", true, true, 0, "raised privileges"},
    {"nor as another user", true, true, 1000, "raised privileges"},
};

INSTANTIATE_TEST_SUITE_P(rows, privilege, testing::ValuesIn(privileges));

class variables : public testing::Test {
 protected:
  void TearDown() override {
    for (const std::string& name : set_) unsetenv(name.c_str());
  }
  void set(const std::string& name, const std::string& value) {
    ASSERT_EQ(setenv(name.c_str(), value.c_str(), 1), 0);
    set_.push_back(name);
  }

 private:
  std::vector<std::string> set_;
};

TEST_F(variables, name_the_users_folders_in_order) {
  set("HOME", "/home/u");
  set("XDG_DATA_HOME", "/home/u/data");
  set("BITNET_BACKEND_PATH", "/one:relative::./two:/three: :");
  std::vector<std::string> paths;
  for (const auto& [path, named_by] : user_manifest_directories())
    paths.push_back(named_by + "=" + path.string());
  EXPECT_EQ(paths,
            (std::vector<std::string>{"XDG_DATA_HOME=/home/u/data/bitnet/backends.d",
                                      "BITNET_BACKEND_PATH=/one", "BITNET_BACKEND_PATH=/three"}))
      << "a relative path would lead into the current directory";
  set("XDG_DATA_HOME", "data");
  set("BITNET_BACKEND_PATH", "");
  ASSERT_EQ(user_manifest_directories().size(), 1U);
  EXPECT_EQ(user_manifest_directories()[0].path, "/home/u/.local/share/bitnet/backends.d");
  set("HOME", "home");
  EXPECT_TRUE(user_manifest_directories().empty());
}

TEST_F(variables, never_change_the_systems_folders) {
  const auto before = system_manifest_directories();
  set("HOME", "/home/u");
  set("XDG_DATA_HOME", "/x");
  set("XDG_DATA_DIRS", "/y");
  set("BITNET_BACKEND_PATH", "/z");
  set("LD_LIBRARY_PATH", "/w");
  EXPECT_EQ(system_manifest_directories(), before);
  // Lowest precedence first: distribution, local, temporary, administrator.
  const std::vector<std::filesystem::path> end = {
      "/usr/local/share/bitnet/backends.d", "/run/bitnet/backends.d", "/etc/bitnet/backends.d"};
  ASSERT_GE(before.size(), 4U);
  EXPECT_EQ(std::vector(before.end() - 3, before.end()), end);
}

// A prefix follows from where a manifest lies; anywhere else the running library's counts.
TEST(backend_directories, begin_beside_the_manifest) {
  const auto own = backend_directories("/etc/bitnet/backends.d/50-a.yaml");
  ASSERT_EQ(own.size(), 1U);
  EXPECT_TRUE(own[0].string().ends_with("bitnet/backends-0")) << own[0];
  const auto beside = backend_directories("/opt/a/share/bitnet/backends.d/50-a.yaml");
  ASSERT_GE(beside.size(), 2U);
  EXPECT_EQ(beside.back(), own[0]);
  for (const auto& one : std::vector(beside.begin(), beside.end() - 1)) {
    EXPECT_TRUE(one.string().starts_with("/opt/a/lib")) << one;
    EXPECT_TRUE(one.string().ends_with("/bitnet/backends-0")) << one;
  }
  EXPECT_NE(std::ranges::find(beside, "/opt/a/lib/bitnet/backends-0"), beside.end());
  for (const char* elsewhere :
       {"/opt/a/share/bitnet/50-a.yaml", "/opt/a/other/bitnet/backends.d/50-a.yaml",
        "/opt/a/share/bitnet/backends.d/deeper/50-a.yaml", "50-a.yaml"})
    EXPECT_EQ(backend_directories(elsewhere), own) << elsewhere;
}

// GNUInstallDirs allows absolute folders: such an end is taken off nothing.
TEST(without_end, takes_off_whole_folders_only) {
  const struct {
    const char *directory, *end, *left;  // "": nothing
  } rows[] = {
      {"/opt/a/lib", "lib", "/opt/a"},
      {"/opt/a/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu", "/opt/a"},
      {"/opt/a/lib", "lib/", "/opt/a"},
      {"/opt/a/lib", "", "/opt/a/lib"},
      {"/lib", "lib", "/"},
      {"/opt/a/lib64", "lib", ""},
      {"/lib", "usr/lib", ""},
      {"/opt/a/lib", "/opt/a/lib", ""},
      {"/opt/a/lib", "/lib", ""},
      {"/opt/a/lib", "/", ""},
      {"/", "/usr/lib", ""},
  };
  for (const auto& row : rows)
    EXPECT_EQ(without_end(row.directory, row.end).value_or(""), row.left)
        << row.directory << " less " << row.end;
}

TEST(place_of, follows_an_installation_that_was_moved) {
  const struct {
    const char *why, *prefix, *library_directory, *own_directory, *folder, *place;
  } rows[] = {
      {"as it was built", "/usr", "lib", "/usr/lib", "share/b", "/usr/share/b"},
      {"moved", "/usr", "lib", "/opt/a/lib", "share/b", "/opt/a/share/b"},
      {"in no such folder", "/usr", "lib", "/elsewhere", "share/b", "/usr/share/b"},
      {"nothing is known", "/usr", "lib", "", "share/b", "/usr/share/b"},
      {"each has a prefix of its own", "/store/a", "/store/b/lib", "/store/b/lib", "share/b",
       "/store/a/share/b"},
      {"which libraries have too", "/store/a", "/store/b/lib", "/store/b/lib", "/store/b/lib/c",
       "/store/b/lib/c"},
      {"only the data", "/usr", "lib", "/usr/lib", "/srv/share", "/srv/share"},
      {"data outside is not moved along", "/usr", "lib", "/opt/a/lib", "/srv/none", "/srv/none"},
      {"of a build tree", "/store/a", "/store/b/lib", "/build/store/b/lib", "share/b",
       "/build/share/b"},
  };
  for (const auto& row : rows)
    EXPECT_EQ(place_of(row.folder, row.own_directory, {row.prefix, row.library_directory}),
              row.place)
        << row.why;
}

TEST_F(variables, name_a_place_for_what_goes_at_the_end) {
  set("TMPDIR", "/var/tmp");
  EXPECT_EQ(temporary_directory(), "/var/tmp");
  EXPECT_EQ(temporary_directory(true), "/tmp") << "raised privileges do not listen";
  for (const char* other : {"TMP", "TEMP", "TEMPDIR"}) set(other, "/elsewhere");
  for (const char* no_place : {"", ".", "tmp"}) {
    set("TMPDIR", no_place);
    EXPECT_EQ(temporary_directory(), "/tmp") << no_place;
  }
}

TEST_F(variables, take_backends_away) {
  EXPECT_TRUE(only_backends().empty());
  EXPECT_TRUE(disabled_backends().empty());
  set("BITNET_BACKENDS", " cuda, cpu ,,");
  set("BITNET_BACKENDS_DISABLE", "org.*,?pu");
  EXPECT_EQ(only_backends(), (std::vector<std::string>{"cuda", "cpu"}));
  EXPECT_EQ(disabled_backends(), (std::vector<std::string>{"org.*", "?pu"}));
}

}  // namespace
}  // namespace bitnet::environment

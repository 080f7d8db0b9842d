// What a manifest names makes another fingerprint when it changes, and what it does not name does
// not.

#include "probe/fingerprint.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "../../fakes/loader_fixture.hpp"

namespace bitnet::probe {
namespace {

class fingerprints : public testing::Test {
 protected:
  [[nodiscard]] std::string of(const plugin::probe_facts& on) const {
    return fingerprint(files_.path() / "libx.so", {}, {}, on, {}, false);
  }
  test::folder files_;
};

TEST_F(fingerprints, stay_where_nothing_changed) {
  const plugin::probe_facts on{.env = {"FINGERPRINT_TEST"},
                               .modules = {"no_such_module"},
                               .libraries = {"libno-such.so"},
                               .folders = {files_.path(), "/no/such/folder"},
                               .nodes = {"/dev/nul*"},
                               .late_nodes = {{"driver", "/dev/null"}}};
  EXPECT_EQ(of(on), of(on));
  EXPECT_EQ(of(on).size(), 32U);
}

TEST_F(fingerprints, see_a_variable_that_is_named) {
  ::unsetenv("FINGERPRINT_TEST");
  const plugin::probe_facts named{.env = {"FINGERPRINT_TEST"}};
  const std::string none = of({}), without = of(named);
  ::setenv("FINGERPRINT_TEST", "1", 1);
  const std::string one = of(named);
  ::setenv("FINGERPRINT_TEST", "2", 1);
  EXPECT_NE(one, without);
  EXPECT_NE(of(named), one);
  EXPECT_EQ(of({}), none);
  ::unsetenv("FINGERPRINT_TEST");
}

TEST_F(fingerprints, see_files_of_a_folder_that_is_named) {
  const std::filesystem::path drivers = files_.path() / "drivers.d";
  std::filesystem::create_directories(drivers);
  const plugin::probe_facts named{.folders = {drivers}};
  const std::string none = of({}), empty = of(named);
  files_.write("drivers.d/one.json", "{}");
  const std::string one = of(named);
  EXPECT_NE(one, empty);
  files_.write("drivers.d/one.json", "{ }");
  EXPECT_NE(of(named), one);
  EXPECT_EQ(of({}), none);
}

TEST_F(fingerprints, see_libraries_wherever_the_linker_looks) {
  plugin::inspection inspected;
  inspected.run_path = {"$ORIGIN/drivers"};
  const auto with = [&](const plugin::probe_facts& on) {
    return fingerprint(files_.path() / "libx.so", {}, inspected, on, {}, false);
  };
  std::filesystem::create_directories(files_.path() / "drivers");
  const plugin::probe_facts named{.libraries = {"libdriver.so.1"}};
  const std::string none = with({}), without = with(named);
  files_.write("drivers/libdriver.so.1", "1");
  const std::string one = with(named);
  EXPECT_NE(one, without);
  files_.write("drivers/libdriver.so.1", "22");
  EXPECT_NE(with(named), one);
  EXPECT_EQ(with({}), none);
}

TEST_F(fingerprints, see_nodes_by_pattern) {
  const std::string none = of({});
  EXPECT_NE(of({.nodes = {"/dev/null"}}), none);
  EXPECT_EQ(of({.nodes = {"/dev/nul*"}}), of({.nodes = {"/dev/null"}}));
  EXPECT_EQ(of({.nodes = {"/dev/n*ll"}}), of({.nodes = {"/dev/null"}}));
  EXPECT_EQ(of({.nodes = {"/dev/null*null"}}), none) << "the parts must not overlap";
  EXPECT_EQ(of({.nodes = {"/dev/no-such-node*"}}), none);
  EXPECT_NE(of({.late_nodes = {{"driver", "/dev/null"}}}), none);
  EXPECT_EQ(of({.late_nodes = {{"driver", "/dev/no-such-node"}}}), none);
}

// Only modules that are loaded and carry a version count.
TEST_F(fingerprints, see_versions_of_modules_that_are_named) {
  for (const auto& module : std::filesystem::directory_iterator("/sys/module"))
    if (std::string line; std::getline(std::ifstream(module.path() / "version"), line)) {
      EXPECT_NE(of({.modules = {module.path().filename().string()}}), of({}));
      return;
    }
  GTEST_SKIP() << "no kernel module that is loaded has a version";
}

}  // namespace
}  // namespace bitnet::probe

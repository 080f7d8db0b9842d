// Libraries that changed on disk after the process had loaded them.

#include "plugin/dependencies.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "../../fakes/loader_fixture.hpp"

namespace bitnet::plugin {
namespace {

TEST(stale_libraries, are_those_that_were_replaced) {
  const test::folder f;
  const std::string bytes = test::folder::read(test::folder::built("good"));
  const auto common = f.write("libcommon.so.1", bytes, 0755);
  void* const loaded = dlopen(common.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(loaded, nullptr) << dlerror();
  inspection plugin;
  plugin.needed = {"libcommon.so.1", "libc.so.6"};
  EXPECT_TRUE(stale_libraries(plugin).empty());

  f.write("new", bytes, 0755);
  std::filesystem::rename(f.path() / "new", common);
  EXPECT_EQ(stale_libraries(plugin), std::vector<std::string>{common.string()});

  std::filesystem::remove(common);
  EXPECT_EQ(stale_libraries(plugin), std::vector<std::string>{common.string()})
      << "gone is not what the plugin was built for either";

  plugin.needed = {"libc.so.6"};
  EXPECT_TRUE(stale_libraries(plugin).empty()) << "nobody else's concern";
  dlclose(loaded);
}

}  // namespace
}  // namespace bitnet::plugin

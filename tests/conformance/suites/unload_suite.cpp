// Unmapped for good: what a plugin that declares BITNET_LIFE_UNLOADABLE promises.

#include <gtest/gtest.h>

#include <thread>

#include "model/tiny_model.hpp"
#include "suites/plugin_copy.hpp"
#include "suites/process_state.hpp"
#include "suites/trial.hpp"

namespace bitnet::conformance {
namespace {

// Uses a copy of the file in this thread and another one, then closes; whether it may be unloaded.
bool use(const plugin_copy& copy, const model& m) {
  open_how how;
  how.entry = copy.entry();
  opened_device d(how);
  bitnet_backend_info info{};
  info.struct_size = sizeof info;
  must([&](bitnet_error* e) { return d.table().info(d.table().self, &info, e); });
  if ((info.life_flags & BITNET_LIFE_UNLOADABLE) == 0) return false;
  if (!missing_ops(d, m).empty()) return true;
  runner_options o;
  o.opened = d.device;
  runner r(d.table(), m, o);
  r.run({{1}, {2}});
  std::thread([&] { r.run({{3}}); }).join();
  return true;
}

TEST(unload, nothing_is_mapped_afterwards) {
  const tiny_model m({});
  constexpr int rounds = 10;
  for (int round = 0; round < rounds; ++round) {
    plugin_copy copy;
    ASSERT_NE(copy.entry(), nullptr);
    bool may = false;
    // A thread that used the plugin ends after the library is gone: nothing of it may run then.
    std::thread([&] {
      may = use(copy, m);
      copy.unload();
    }).join();
    if (!may) GTEST_SKIP() << "it does not declare BITNET_LIFE_UNLOADABLE";
    ASSERT_FALSE(is_mapped(copy.file())) << "dlclose did not unmap it: something pins the library";
  }
}

}  // namespace
}  // namespace bitnet::conformance

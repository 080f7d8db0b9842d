// Nothing leaves a call but its return value. Calls of abort, exit, setenv and their like, output
// and exceptions are found in every suite, where they happen; here is what must be compared.

#include <gtest/gtest.h>

#include "model/tiny_model.hpp"
#include "suites/process_state.hpp"
#include "suites/trial.hpp"

namespace bitnet::conformance {
namespace {

// Opens, looks at everything, computes if it can, and closes.
void use_once() {
  const opened one;
  const bitnet_backend_v0& t = one.table();
  uint32_t n = 0;
  const outcome o = attempt([&](bitnet_error* e) { return t.device_count(t.self, &n, e); });
  if (o.status != BITNET_OK || n <= run_options().device) return;
  opened_device device;
  device.list_kernels();
  const tiny_model m({});
  if (!missing_ops(device, m).empty()) return;
  runner_options options;
  options.opened = device.device;
  runner r(device.table(), m, options);
  r.run({{1}, {2}, {3}});
}

TEST(hygiene, process_stays_as_it_was) {
  const auto before = process_state();
  entry_of_plugin();
  EXPECT_EQ(difference(before, process_state()), "") << "loading changed it";
  use_once();
  EXPECT_EQ(difference(before, process_state()), "") << "using it changed it";
}

// Each call alone: a mode that is changed and set back at the end would round the host's own
// arithmetic in between.
const uint64_t modes_at_start = floating_point_modes();

TEST(hygiene, floating_point_modes_stay) {
  const uint64_t before = modes_at_start;
  const opened one;
  EXPECT_EQ(floating_point_modes(), before) << "after the entry";
  const bitnet_backend_v0& t = one.table();
  uint32_t n = 0;
  const outcome o = attempt([&](bitnet_error* e) { return t.device_count(t.self, &n, e); });
  EXPECT_EQ(floating_point_modes(), before) << "after device_count";
  if (o.status != BITNET_OK || n <= run_options().device) GTEST_SKIP() << "there is no device";
  opened_device device;
  EXPECT_EQ(floating_point_modes(), before) << "after device_open";
  const tiny_model m({});
  if (const std::string missing = missing_ops(device, m); !missing.empty())
    GTEST_SKIP() << "graph_query answers none for " << missing;
  runner_options options;
  options.opened = device.device;
  runner r(device.table(), m, options);
  EXPECT_EQ(floating_point_modes(), before) << "after program_build";
  r.run({{1}, {2}, {3}});
  EXPECT_EQ(floating_point_modes(), before) << "after a step";
}

}  // namespace
}  // namespace bitnet::conformance

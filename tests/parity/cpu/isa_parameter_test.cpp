// The cpu backend's setting `isa`, through the exported symbol.

#include <gtest/gtest.h>

#include "device.hpp"
#include "runner.hpp"
#include "targets.hpp"

namespace bitnet::parity {
namespace {

TEST(isa_parameter, without_it_the_best_that_this_cpu_has_is_taken) {
  tiny_host host(1);
  const plugin p(all_plugins().back().path, host);
  bitnet_device_info info{};
  info.struct_size = sizeof info;
  must([&](bitnet_error* e) { return p.table.device_info(p.table.self, 0, &info, e); });
  std::string why;
  const std::string best = cpu::choose_isa("", why)->name;
  EXPECT_TRUE(std::string(info.arch).ends_with(" " + best)) << info.arch;
}

TEST(isa_parameter, what_cannot_be_had_is_said) {
  tiny_host host(1);
  const plugin p(all_plugins().back().path, host, "neon9");
  uint32_t n = 0;
  const outcome o =
      attempt([&](bitnet_error* e) { return p.table.device_count(p.table.self, &n, e); });
  EXPECT_EQ(o.status, BITNET_UNAVAILABLE);
  EXPECT_NE(o.message.find("neon9"), std::string::npos) << o.message;
  EXPECT_NE(o.message.find("scalar"), std::string::npos) << o.message;
  bitnet_device* device = nullptr;
  EXPECT_EQ(attempt([&](bitnet_error* e) {
              return conformance::open_device(p.table, 0, &device, e);
            }).status,
            BITNET_UNAVAILABLE);
}

}  // namespace
}  // namespace bitnet::parity

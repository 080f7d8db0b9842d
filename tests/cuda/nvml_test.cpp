// What the management library tells goes on, and nothing else: what it does not know stays unknown.

#include "nvml.hpp"

#include <gtest/gtest.h>

namespace bitnet::cuda::test {
namespace {

TEST(cuda_nvml, what_is_told_goes_on) {
  const auto library = nvml::open(BITNET_NVML, "ffff:00:00.0");
  ASSERT_NE(library, nullptr);
  bitnet_device_status out{};
  library->add(out);
  EXPECT_EQ(out.known, BITNET_STATUS_UTILISATION | BITNET_STATUS_TEMPERATURE | BITNET_STATUS_POWER |
                           BITNET_STATUS_CLOCK | BITNET_STATUS_MEMORY_CLOCK |
                           BITNET_STATUS_THROTTLED);
  EXPECT_EQ(out.utilisation_percent, 37u);
  EXPECT_EQ(out.temperature_millicelsius, 64000);
  EXPECT_EQ(out.power_milliwatts, 123456u);
  EXPECT_EQ(out.clock_khz, 1'500'000u);
  EXPECT_EQ(out.memory_clock_khz, 2'600'000u);
  EXPECT_EQ(out.throttled, BITNET_THROTTLED_HEAT);
}

TEST(cuda_nvml, without_a_library_or_the_device_there_is_nothing) {
  EXPECT_EQ(nvml::open("libnvidia-ml-absent.so.1", "ffff:00:00.0"), nullptr);
  EXPECT_EQ(nvml::open("libc.so.6", "ffff:00:00.0"), nullptr);
  EXPECT_EQ(nvml::open(BITNET_NVML, "0000:01:00.0"), nullptr);
}

}  // namespace
}  // namespace bitnet::cuda::test

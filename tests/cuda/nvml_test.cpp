// Values of the management library are passed on unchanged; what it does not know stays unknown.

#include "nvml.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace bitnet::cuda::test {
namespace {

TEST(cuda_nvml, values_are_passed_on) {
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

TEST(cuda_nvml, instances_that_are_not_there_or_not_shown) {
  EXPECT_EQ(advice_on_instances("libnvidia-ml-absent.so.1"), "");
  EXPECT_EQ(advice_on_instances("libc.so.6"), "");
  unsetenv("BITNET_STAND_IN_INSTANCES");
  EXPECT_EQ(advice_on_instances(BITNET_NVML), "");
  const struct {
    const char *instances, *says, *helps;
  } rows[] = {
      {"0", "GPU 0 (Stand-in (no GPU)) is in MIG mode and has no instance: ",
       "nvidia-smi mig -i 0 -cgi PROFILE -C, or end the mode with nvidia-smi -i 0 -mig 0"},
      {"3", " is in MIG mode and shows none of its 3 instances: ",
       "name one of nvidia-smi -L in CUDA_VISIBLE_DEVICES"},
  };
  for (const auto& row : rows) {
    setenv("BITNET_STAND_IN_INSTANCES", row.instances, 1);
    const std::string advice = advice_on_instances(BITNET_NVML);
    EXPECT_NE(advice.find(row.says), std::string::npos) << advice;
    EXPECT_NE(advice.find(row.helps), std::string::npos) << advice;
  }
}

}  // namespace
}  // namespace bitnet::cuda::test

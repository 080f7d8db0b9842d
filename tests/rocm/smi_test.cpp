// What rocm-smi's library reports of a device, by a stand-in for it.

#include "smi.hpp"

#include <gtest/gtest.h>

namespace bitnet::rocm::test {
namespace {

TEST(smi, reports_of_the_device_at_that_address) {
  const auto made = smi::open(BITNET_ROCM_SMI, "0000:c1:00.0");
  ASSERT_NE(made, nullptr);
  bitnet_device_status out{};
  made->add(out);
  EXPECT_EQ(out.known, BITNET_STATUS_UTILISATION | BITNET_STATUS_TEMPERATURE | BITNET_STATUS_POWER |
                           BITNET_STATUS_ECC);
  EXPECT_EQ(out.utilisation_percent, 37u);
  EXPECT_EQ(out.temperature_millicelsius, 64000);  // of the junction: it has no other sensor
  EXPECT_EQ(out.power_milliwatts, 123456u);
  EXPECT_EQ(out.ecc_corrected, 5u);
  EXPECT_EQ(out.ecc_uncorrected, 1u);
}

TEST(smi, knows_no_other_device) {
  for (const char* address : {"0000:03:00.0", "0001:c1:00.0", "0000:c1:00.1", "", "c1:00.0"})
    EXPECT_EQ(smi::open(BITNET_ROCM_SMI, address), nullptr) << address;
  EXPECT_EQ(smi::open("libthere-is-none.so", "0000:c1:00.0"), nullptr);
}

}  // namespace
}  // namespace bitnet::rocm::test

#include "compute/kv_types.hpp"

#include <gtest/gtest.h>

namespace bitnet::compute {
namespace {

TEST(kv_types, a_device_without_a_mask_has_f32_and_f16) {
  bitnet_device_info device{};
  EXPECT_EQ(kv_type_names(device), (std::vector<std::string>{"f32", "f16"}));
  EXPECT_FALSE(has_kv_type(device, BITNET_DTYPE_Q8_0));
  device.kv_dtypes = 1U << BITNET_DTYPE_F16 | 1U << BITNET_DTYPE_Q8_0 | 1U << 31U;
  EXPECT_EQ(kv_type_names(device), (std::vector<std::string>{"f16", "q8_0"}))
      << "an unknown type is passed over";
  device.kv_dtypes |= 1U << BITNET_DTYPE_Q4_0;
  EXPECT_EQ(kv_type_names(device), (std::vector<std::string>{"f16", "q8_0", "q4_0"}));
}

TEST(kv_types, a_head_that_is_not_whole_blocks_is_rejected) {
  const struct {
    uint32_t dtype;
    uint64_t head_dim, bytes;
  } rows[] = {{BITNET_DTYPE_F32, 100, 400},  {BITNET_DTYPE_F16, 100, 200},
              {BITNET_DTYPE_Q8_0, 128, 136}, {BITNET_DTYPE_Q8_0, 32, 34},
              {BITNET_DTYPE_Q8_0, 100, 0},   {BITNET_DTYPE_Q4_0, 128, 72},
              {BITNET_DTYPE_Q4_0, 32, 18},   {BITNET_DTYPE_Q4_0, 80, 0}};
  for (const auto& row : rows)
    EXPECT_EQ(kv_head_bytes(*find_kv_type(row.dtype), row.head_dim), row.bytes);
  EXPECT_EQ(find_kv_type(BITNET_DTYPE_I8), nullptr);
}

}  // namespace
}  // namespace bitnet::compute

// The table of forms: each is SPIR-V, and what plans ask for is in it.

#include "forms.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>

#include "bitnet/abi/ops.h"

namespace bitnet::level_zero {
namespace {

using gpu::kernel_id;
using gpu::kernel_spec;

uint32_t word(const form& f, size_t i) {
  uint32_t out = 0;
  std::memcpy(&out, f.begin + 4 * i, sizeof out);
  return out;
}

TEST(forms, are_spirv_with_the_entry_that_is_called) {
  ASSERT_FALSE(forms().empty());
  for (const form& f : forms()) {
    const std::string name = gpu::row_of(f.id).name;
    ASSERT_GT(f.end - f.begin, 200) << name;
    EXPECT_EQ(word(f, 0), 0x07230203u) << name;
    EXPECT_LE(word(f, 1), 0x00010100u) << name << ": newer than SPIR-V 1.1";
    const std::string all(reinterpret_cast<const char*>(f.begin),
                          static_cast<size_t>(f.end - f.begin));
    EXPECT_NE(all.find("bitnet_" + name + '\0'), std::string::npos) << name;
  }
}

// No device is asked for what only some have: capability 10 is Float64, 9 Float16.
TEST(forms, need_neither_doubles_nor_halves) {
  for (const form& f : forms())
    for (size_t i = 5; 4 * i < static_cast<size_t>(f.end - f.begin);) {
      const uint32_t head = word(f, i);
      if ((head & 0xffffu) == 17) {  // OpCapability
        EXPECT_NE(word(f, i + 1), 10u) << gpu::row_of(f.id).name;
        EXPECT_NE(word(f, i + 1), 9u) << gpu::row_of(f.id).name;
      }
      ASSERT_NE(head >> 16, 0u);
      i += head >> 16;
    }
}

TEST(forms, every_kernel_that_all_backends_bring_has_some) {
  std::set<kernel_id> have;
  for (const form& f : forms()) have.insert(f.id);
  EXPECT_EQ(have.size(), static_cast<size_t>(kernel_id::every));
}

TEST(forms, the_least_that_has_room_is_taken) {
  const auto room = [](kernel_spec spec, uint32_t constant) {
    const form* const found = form_of(spec);
    return found ? found->constants[constant] : 0;
  };
  EXPECT_EQ(room({kernel_id::bit_linear, {64, 32, 1, 4, 640}}, 4), 1024u);
  EXPECT_EQ(room({kernel_id::bit_linear, {64, 32, 0, 4, 1024}}, 4), 1024u);
  EXPECT_EQ(room({kernel_id::bit_linear, {64, 32, 0, 4, 1056}}, 4), 2048u);
  EXPECT_EQ(room({kernel_id::bit_linear, {64, 32, 0, 4, 16096}}, 4), 16096u);
  EXPECT_EQ(room({kernel_id::attn_paged, {64, 2, 2, 1}}, 3), 2u);
  EXPECT_EQ(room({kernel_id::attn_paged, {64, 6, 5, 8}}, 3), 8u);
  EXPECT_EQ(room({kernel_id::linear_ternary, {64, 32, 3, 4}}, 2), 4u);
  EXPECT_EQ(room({kernel_id::delta_rule, {64, 100}}, 1), 256u);
  for (uint32_t op : {BITNET_OP_ADD, BITNET_OP_MUL, BITNET_OP_RELU2, BITNET_OP_SILU, BITNET_OP_GELU,
                      BITNET_OP_SCALE, BITNET_OP_SIGMOID})
    EXPECT_NE(form_of({kernel_id::elementwise, {64, op}}), nullptr) << op;
}

TEST(forms, what_has_no_room_has_none) {
  EXPECT_EQ(form_of({kernel_id::bit_linear, {64, 32, 0, 4, 16128}}), nullptr);
  EXPECT_EQ(form_of({kernel_id::attn_paged, {64, 2, 2, 9}}), nullptr);
  EXPECT_EQ(form_of({kernel_id::attn_paged, {32, 2, 2, 1}}), nullptr);
  EXPECT_EQ(form_of({kernel_id::count, {64}}), nullptr);
}

}  // namespace
}  // namespace bitnet::level_zero

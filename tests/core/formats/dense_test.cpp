// Types that pass unchanged, and vectors that become F32.
#include <gtest/gtest.h>

#include <cmath>

#include "../gguf/gguf_builder.hpp"
#include "base/floats.hpp"
#include "bitnet/abi/tensor.h"
#include "formats/reading.hpp"
#include "gguf/types.hpp"

namespace bitnet::formats {
namespace {

using tests::bytes;
namespace type = gguf::type;

TEST(dense, passes_known_types_unchanged) {
  struct row {
    uint32_t type, format;
    uint64_t row_bytes;  // of 512 elements
  };
  const row rows[] = {{type::f32, BITNET_FORMAT_F32, 2048},   {type::f16, BITNET_FORMAT_F16, 1024},
                      {type::bf16, BITNET_FORMAT_BF16, 1024}, {type::q8_0, BITNET_FORMAT_Q8_0, 544},
                      {type::q4_0, BITNET_FORMAT_Q4_0, 288},  {type::q4_k, BITNET_FORMAT_Q4_K, 288},
                      {type::q6_k, BITNET_FORMAT_Q6_K, 420}};
  for (const row& r : rows) {
    const auto size = gguf::size_of(r.type);
    ASSERT_TRUE(size);
    EXPECT_EQ(512 / size->block * size->bytes, r.row_bytes) << gguf::type_name(r.type);
    const bytes data(3 * r.row_bytes);
    const auto to = understand({.type = r.type, .k = 512, .m = 3, .bytes = data});
    ASSERT_TRUE(to) << to.error().message;
    EXPECT_EQ(to->format, r.format);
    EXPECT_EQ(to->data_bytes, data.size());
    EXPECT_TRUE(to->verbatim);
    EXPECT_TRUE(to->scales.empty());
    EXPECT_TRUE(is_readable(r.type));
  }
}

TEST(dense, rejects_scales_that_are_no_numbers) {
  struct row {
    uint32_t type;
    size_t bytes, scale_at;  // in the second block
    const char* why;
  };
  const row rows[] = {{type::q8_0, 34, 0, "Q8_0 d"},
                      {type::q4_0, 18, 0, "Q4_0 d"},
                      {type::q4_k, 144, 0, "Q4_K d"},
                      {type::q4_k, 144, 2, "Q4_K dmin"},
                      {type::q6_k, 210, 208, "Q6_K d"}};
  for (const row& r : rows)
    for (const uint16_t bits : {0x7c00, 0xfc00, 0x7e00}) {
      bytes data(2 * r.bytes);
      std::memcpy(&data[r.bytes + r.scale_at], &bits, sizeof bits);
      const auto to =
          understand({.type = r.type, .k = gguf::size_of(r.type)->block, .m = 2, .bytes = data});
      ASSERT_FALSE(to) << r.why;
      EXPECT_EQ(to.error().status, BITNET_BAD_DATA);
      EXPECT_NE(to.error().message.find("the scale of block 1"), std::string::npos) << r.why;
    }
}

TEST(dense, names_the_type_that_it_cannot_read) {
  for (const uint32_t id : {3U, 10U, 16U, 24U, 26U, 28U, 37U, 40U, 136U, 999U, UINT32_MAX}) {
    const bytes data(1024);
    const auto to = understand({.type = id, .k = 256, .m = 1, .bytes = data});
    ASSERT_FALSE(to) << id;
    EXPECT_FALSE(is_readable(id));
    EXPECT_EQ(to.error().status, BITNET_UNSUPPORTED);
    EXPECT_NE(to.error().message.find(gguf::type_name(id)), std::string::npos);
    EXPECT_NE(to.error().message.find("I2_S (36)"), std::string::npos) << "says what would do";
  }
}

TEST(dense, vectors_become_f32) {
  const float expected[] = {1.5F, -0.25F, 65504.0F};
  bytes f32, f16, bf16;
  for (const float x : expected) tests::put(f32, x);
  for (const uint16_t bits : {0x3e00, 0xb400, 0x7bff}) tests::put(f16, bits);
  for (const uint16_t bits : {0x3fc0, 0xbe80, 0x477f}) tests::put(bf16, bits);
  struct row {
    uint32_t type;
    const bytes& data;
    float last;
  };
  for (const row& r :
       {row{type::f32, f32, 65504}, row{type::f16, f16, 65504}, row{type::bf16, bf16, 65280}}) {
    const source from{.type = r.type, .k = 3, .bytes = r.data};
    const auto to = understand_vector(from);
    ASSERT_TRUE(to) << to.error().message;
    EXPECT_EQ(to->format, BITNET_FORMAT_F32);
    ASSERT_EQ(to->data_bytes, 12U);
    EXPECT_EQ(to->verbatim, r.type == type::f32);
    float got[3];
    convert(from, *to, 0, std::as_writable_bytes(std::span(got)));
    EXPECT_EQ(got[0], 1.5F);
    EXPECT_EQ(got[1], -0.25F);
    EXPECT_EQ(got[2], r.last);
  }
  EXPECT_EQ(understand_vector({.type = type::q8_0, .k = 32}).error().status, BITNET_UNSUPPORTED);
  const float nan = NAN;
  std::memcpy(&f32[4], &nan, sizeof nan);
  EXPECT_NE(understand_vector({.type = type::f32, .k = 3, .bytes = f32})
                .error()
                .message.find("element 1"),
            std::string::npos);
}

TEST(dense, every_16_bit_float_is_exact) {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const uint32_t exponent = bits >> 10 & 31;
    const auto fraction = static_cast<double>(bits & 0x3ff);
    const double sign = (bits & 0x8000) != 0 ? -1 : 1;
    const float got = from_f16(static_cast<uint16_t>(bits));
    if (exponent == 31) {
      ASSERT_EQ(std::isnan(got), fraction != 0) << bits;
      ASSERT_EQ(std::signbit(got), sign < 0) << bits;
      continue;
    }
    const double expected = exponent == 0
                                ? std::ldexp(fraction, -24)
                                : std::ldexp(1 + fraction / 1024, static_cast<int>(exponent) - 15);
    ASSERT_EQ(static_cast<double>(got), sign * expected) << bits;
    ASSERT_EQ(std::signbit(got), sign < 0) << bits;
  }
  EXPECT_EQ(from_bf16(0x3f80), 1.0F);
  EXPECT_EQ(from_bf16(0xc0a0), -5.0F);
}

}  // namespace
}  // namespace bitnet::formats

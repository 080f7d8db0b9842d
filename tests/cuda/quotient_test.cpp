// Quotients by a reciprocal have the bits of a division: kernels/quotient.cuh has the proof, and
// here are the numbers for which it matters.

#define BITNET_SIMT
#include "simt.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include "plugins/cuda/kernels/quotient.cuh"

namespace bitnet::kernels {
namespace {

// How many of the pairs have other bits; the first is said.
struct judge {
  uint64_t wrong = 0, seen = 0;

  void look(float n, float by) {
    const divisor d = divisor_of(by);
    ASSERT_TRUE(d.usual()) << by;
    const float got = d.quotient(n), want = n / by;
    ++seen;
    if (std::bit_cast<uint32_t>(got) == std::bit_cast<uint32_t>(want)) return;
    if (wrong++ == 0) ADD_FAILURE() << std::hexfloat << n << " / " << by << " is not " << got;
  }
};

// The quotients that lie nearest to the middle of two floats: n * 2^25 = middle * by + c for small
// c, of every odd significand. Those of even ones are not as near.
TEST(quotient, rounds_correctly_where_it_is_hardest) {
  constexpr uint32_t least = 1u << 23, most = 1u << 24, bits = 25, mask = (1u << bits) - 1;
  judge all;
  for (uint32_t by = least + 1; by < most; by += 2) {
    uint32_t inverse = by;  // modulo 2^25: each line doubles the bits that are right, from three on
    for (int i = 0; i < 4; ++i) inverse *= 2 - by * inverse;
    for (const int c : {1, -1, 3, -3, 5, -5}) {
      const uint32_t middle = (static_cast<uint32_t>(-c) * inverse) & mask;
      const uint64_t product = uint64_t{middle} * by + static_cast<uint64_t>(int64_t{c});
      const auto n = static_cast<uint32_t>(product >> bits);
      if (middle < most || n == 0 || n >= most) continue;
      all.look(static_cast<float>(n), std::ldexp(static_cast<float>(by), -23));
      if (all.wrong != 0) return;
    }
  }
  EXPECT_GT(all.seen, 6'000'000u);
}

TEST(quotient, rounds_correctly_everywhere) {
  std::mt19937 random(1);
  judge all;
  for (int i = 0; i < 4'000'000; ++i) {
    const auto n = static_cast<int32_t>(random()) >> (random() % 31);
    const float by = std::ldexp(1.0f + static_cast<float>(random() >> 9) * 0x1p-23f,
                                static_cast<int>(random() % 119) - 59);
    all.look(static_cast<float>(n), by);
  }
  EXPECT_EQ(all.wrong, 0u);
}

TEST(quotient, ends_of_what_it_is_for) {
  judge all;
  for (const float by : {0x1.000002p-60f, 0x1.fffffep-60f, 1.0f, 0x1.fffffep0f, 127.0f / 1e-5f,
                         0x1.000002p59f, 0x1.fffffep59f})
    for (const float n : {0.0f, 1.0f, -1.0f, 3.0f, 16777215.0f, -2147483648.0f, 2147483648.0f})
      all.look(n, by);
  EXPECT_EQ(all.wrong, 0u);
  for (const float by : {0.0f, -1.0f, 0x1p-60f, 0x1p60f, HUGE_VALF, std::nanf("")})
    EXPECT_FALSE(divisor_of(by).usual()) << by;
}

}  // namespace
}  // namespace bitnet::kernels

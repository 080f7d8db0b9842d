// What tests of kernels rely on: threads that meet, exchange and vote, and are missed when they do
// not come.

#include "simt.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace simt::test {
namespace {

struct work {
  std::vector<uint32_t>* out;
};
uint32_t me() {
  return threadIdx.x + blockIdx.x * 64;
}

TEST(simt, every_thread_of_every_group_runs) {
  std::vector<uint32_t> out(3 * 64);
  const work w{&out};
  run([](const void* a) { (*static_cast<const work*>(a)->out)[me()] = me() + 1; }, &w,
      {{3, 1, 1}, 64, 0});
  for (uint32_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i], i + 1);
}

TEST(simt, a_barrier_shows_what_others_wrote) {
  std::vector<uint32_t> out(64);
  const work w{&out};
  run(
      [](const void* a) {
        auto* memory = static_cast<uint32_t*>(shared);
        memory[threadIdx.x] = threadIdx.x * 3;
        __syncthreads();
        (*static_cast<const work*>(a)->out)[threadIdx.x] = memory[63 - threadIdx.x];
        __syncthreads();
      },
      &w, {{1, 1, 1}, 64, 256});
  for (uint32_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i], (63 - i) * 3);
}

TEST(simt, lanes_exchange_and_vote) {
  std::vector<uint32_t> out(64);
  const work w{&out};
  run(
      [](const void* a) {
        const uint32_t lane = threadIdx.x % 32;
        uint32_t sum = threadIdx.x;
        for (uint32_t d = 16; d != 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
        const uint32_t third = __shfl_sync(0xffffffffu, threadIdx.x, 3);
        const unsigned int odd = __ballot_sync(0xffffffffu, lane % 2 != 0);
        (*static_cast<const work*>(a)->out)[threadIdx.x] = sum + third + (odd == 0xaaaaaaaau);
      },
      &w, {{1, 1, 1}, 64, 0});
  EXPECT_EQ(out[0], 496u + 3 + 1);
  EXPECT_EQ(out[63], 496u + 32 * 32 + 35 + 1);
}

TEST(simt, products_of_bytes_have_signs) {
  EXPECT_EQ(__dp4a(0x01ff02fe, 0x7f80ff01, 5), 127 + 128 - 2 - 2 + 5);
  EXPECT_EQ(__dp4a(static_cast<int>(0x80808080u), static_cast<int>(0x80808080u), 0), 4 * 16384);
  EXPECT_EQ(dot4_of_unsigned(0x01ff02feu, 0x7f80ff01u, 5), 127 - 255 * 128 - 2 + 254 + 5);
}

// A warp multiplies tiles as tensor cores do: PTX, "Matrix Fragments for mma.m16n8k32".
TEST(simt, fragments_of_a_warp_are_multiplied) {
  static int8_t a[16][32], b[32][8];
  static int c[16][8];
  for (int i = 0; i < 16 * 32; ++i) a[i / 32][i % 32] = static_cast<int8_t>(i * 37 % 251 - 125);
  for (int i = 0; i < 32 * 8; ++i) b[i / 8][i % 8] = static_cast<int8_t>(i * 53 % 247 - 120);
  run(
      [](const void*) {
        const uint32_t group = threadIdx.x / 4, at = threadIdx.x % 4 * 4;
        uint32_t of_a[4] = {}, of_b[2] = {};
        for (uint32_t i = 0; i < 16; ++i)
          of_a[i / 4] |= uint32_t{static_cast<uint8_t>(
                             a[group + (i / 4 % 2) * 8][at + i % 4 + (i >= 8 ? 16 : 0)])}
                         << (i % 4 * 8);
        for (uint32_t i = 0; i < 8; ++i)
          of_b[i / 4] |= uint32_t{static_cast<uint8_t>(b[at + i % 4 + (i >= 4 ? 16 : 0)][group])}
                         << (i % 4 * 8);
        int sums[4] = {1, 2, 3, 4};
        multiply_fragments(sums, of_a, of_b);
        for (uint32_t i = 0; i < 4; ++i)
          c[group + (i >= 2 ? 8 : 0)][threadIdx.x % 4 * 2 + i % 2] = sums[i];
      },
      nullptr, {{1, 1, 1}, 32, 0});
  for (int row = 0; row < 16; ++row)
    for (int column = 0; column < 8; ++column) {
      int expected = 1 + column % 2 + (row >= 8 ? 2 : 0);
      for (int k = 0; k < 32; ++k) expected += a[row][k] * b[k][column];
      EXPECT_EQ(c[row][column], expected) << row << ", " << column;
    }
}

void missed(kernel what) {
  run(what, nullptr, {{1, 1, 1}, 64, 0});
}

void two_barriers(const void*) {
  // NOLINTNEXTLINE(bugprone-branch-clone): what is tested is that they are two
  if (threadIdx.x < 32)
    __syncthreads();
  else
    __syncthreads();
}

TEST(simt_death, who_does_not_come_to_a_barrier_is_missed) {
  EXPECT_DEATH(missed([](const void*) {
                 if (threadIdx.x != 40) __syncthreads();
               }),
               "or left.*\\[40\\] left");
  EXPECT_DEATH(missed(two_barriers), "different barriers");
}

TEST(simt_death, who_does_not_come_to_an_exchange_is_missed) {
  EXPECT_DEATH(missed([](const void*) {
                 if (threadIdx.x != 5) __shfl_sync(0xffffffffu, 1, 0);
               }),
               "lanes of a warp.*\\[5\\] left");
  EXPECT_DEATH(missed([](const void*) { __shfl_sync(0xffffu, 1, 0); }), "not all lanes");
}

}  // namespace
}  // namespace simt::test

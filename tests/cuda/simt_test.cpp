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

// What a warp multiplies: rows of a by columns of b.
struct tile {
  int8_t a[16][32], b[32][8];
  int c[16][8];
  bool of_unsigned;  // the bytes of a have no sign
};
tile numbers(bool of_unsigned) {
  tile out{};
  out.of_unsigned = of_unsigned;
  for (int i = 0; i < 16 * 32; ++i) out.a[i / 32][i % 32] = static_cast<int8_t>(i * 37 % 251 - 125);
  for (int i = 0; i < 32 * 8; ++i) out.b[i / 8][i % 8] = static_cast<int8_t>(i * 53 % 247 - 120);
  return out;
}
// Four elements of a row of a, or of a column of b.
uint32_t word_of_a(const tile& t, uint32_t row, uint32_t k) {
  uint32_t out = 0;
  for (uint32_t i = 0; i < 4; ++i)
    out |= uint32_t{static_cast<uint8_t>(t.a[row][k + i])} << (8 * i);
  return out;
}
uint32_t word_of_b(const tile& t, uint32_t k, uint32_t column) {
  uint32_t out = 0;
  for (uint32_t i = 0; i < 4; ++i)
    out |= uint32_t{static_cast<uint8_t>(t.b[k + i][column])} << (8 * i);
  return out;
}
// After sums that began with 1 in all places.
void expect_products(const tile& t, int rows, int depth) {
  for (int row = 0; row < rows; ++row)
    for (int column = 0; column < 8; ++column) {
      int expected = 1;
      for (int k = 0; k < depth; ++k)
        expected += (t.of_unsigned ? t.a[row][k] & 255 : t.a[row][k]) * t.b[k][column];
      EXPECT_EQ(t.c[row][column], expected) << row << ", " << column;
    }
}

// Tiles as tensor cores have them: PTX, "Matrix Fragments for mma.m16n8k32".
void expect_16_rows(bool of_unsigned) {
  tile t = numbers(of_unsigned);
  run(
      [](const void* argument) {
        auto& mine = *static_cast<tile*>(const_cast<void*>(argument));
        const uint32_t group = threadIdx.x / 4, at = threadIdx.x % 4 * 4;
        const uint32_t a[4] = {word_of_a(mine, group, at), word_of_a(mine, group + 8, at),
                               word_of_a(mine, group, at + 16),
                               word_of_a(mine, group + 8, at + 16)};
        const uint32_t b[2] = {word_of_b(mine, at, group), word_of_b(mine, at + 16, group)};
        int sums[4] = {1, 1, 1, 1};
        if (mine.of_unsigned)
          multiply_unsigned_16x8x32(sums, a, b);
        else
          multiply_16x8x32(sums, a, b);
        for (uint32_t i = 0; i < 4; ++i)
          mine.c[group + (i >= 2 ? 8 : 0)][threadIdx.x % 4 * 2 + i % 2] = sums[i];
      },
      &t, {{1, 1, 1}, 32, 0});
  expect_products(t, 16, 32);
}
TEST(simt, fragments_of_16_rows_and_32_elements_are_multiplied) {
  expect_16_rows(false);
  expect_16_rows(true);
}

// PTX, "Matrix Fragments for mma.m8n8k16".
void expect_8_rows(bool of_unsigned) {
  tile t = numbers(of_unsigned);
  run(
      [](const void* argument) {
        auto& mine = *static_cast<tile*>(const_cast<void*>(argument));
        const uint32_t group = threadIdx.x / 4, at = threadIdx.x % 4 * 4;
        int sums[2] = {1, 1};
        const uint32_t a = word_of_a(mine, group, at), b = word_of_b(mine, at, group);
        if (mine.of_unsigned)
          multiply_unsigned_8x8x16(sums[0], sums[1], a, b);
        else
          multiply_8x8x16(sums[0], sums[1], a, b);
        for (uint32_t i = 0; i < 2; ++i) mine.c[group][threadIdx.x % 4 * 2 + i] = sums[i];
      },
      &t, {{1, 1, 1}, 32, 0});
  expect_products(t, 8, 16);
}
TEST(simt, fragments_of_8_rows_and_16_elements_are_multiplied) {
  expect_8_rows(false);
  expect_8_rows(true);
}

// The same of numbers with 16 bits, two to a word.
struct float_tile {
  float a[16][16], b[16][8], c[16][8];
  uint32_t (*to_bits)(float);
  void (*multiply)(float (&)[4], const uint32_t (&)[4], const uint32_t (&)[2]);
};
// Small whole numbers and halves, which both formats have.
float_tile halves() {
  float_tile out{};
  for (int i = 0; i < 16 * 16; ++i)
    out.a[i / 16][i % 16] = static_cast<float>(i * 37 % 121 - 60) * 0.5f;
  for (int i = 0; i < 16 * 8; ++i) out.b[i / 8][i % 8] = static_cast<float>(i * 53 % 127 - 63);
  return out;
}
void multiply_float_tile(const void* argument) {
  auto& t = *static_cast<float_tile*>(const_cast<void*>(argument));
  const uint32_t group = threadIdx.x / 4, at = threadIdx.x % 4 * 2;
  const auto of_a = [&](uint32_t row, uint32_t k) {
    return t.to_bits(t.a[row][k]) | t.to_bits(t.a[row][k + 1]) << 16;
  };
  const auto of_b = [&](uint32_t k, uint32_t column) {
    return t.to_bits(t.b[k][column]) | t.to_bits(t.b[k + 1][column]) << 16;
  };
  const uint32_t a[4] = {of_a(group, at), of_a(group + 8, at), of_a(group, at + 8),
                         of_a(group + 8, at + 8)};
  const uint32_t b[2] = {of_b(at, group), of_b(at + 8, group)};
  float sums[4] = {1, 1, 1, 1};
  t.multiply(sums, a, b);
  for (uint32_t i = 0; i < 4; ++i) t.c[group + (i >= 2 ? 8 : 0)][at + i % 2] = sums[i];
}

// PTX, "Matrix Fragments for mma.m16n8k16 with floating point type".
TEST(simt, fragments_of_16_rows_and_16_floats_are_multiplied) {
  float_tile f16 = halves(), bf16 = halves();
  f16.to_bits = f32_to_f16;
  f16.multiply = [](float(&c)[4], const uint32_t(&a)[4], const uint32_t(&b)[2]) {
    multiply_f16(c, a, b);
  };
  bf16.to_bits = [](float x) {
    uint32_t bits = 0;
    std::memcpy(&bits, &x, sizeof bits);
    return bits >> 16;
  };
  bf16.multiply = [](float(&c)[4], const uint32_t(&a)[4], const uint32_t(&b)[2]) {
    multiply_bf16(c, a, b);
  };
  for (float_tile* t : {&f16, &bf16}) {
    run(multiply_float_tile, t, {{1, 1, 1}, 32, 0});
    for (int row = 0; row < 16; ++row)
      for (int column = 0; column < 8; ++column) {
        float expected = 1;
        for (int k = 0; k < 16; ++k) expected += t->a[row][k] * t->b[k][column];
        EXPECT_EQ(t->c[row][column], expected) << row << ", " << column;
      }
  }
}

struct copied {
  uint4 from[64];
  uint32_t early[64], late[64];
};
void copy_and_look(const void* argument) {
  auto& w = *static_cast<copied*>(const_cast<void*>(argument));
  auto* memory = static_cast<uint4*>(shared);
  copy_ahead(&memory[threadIdx.x], &w.from[threadIdx.x]);
  w.early[threadIdx.x] = memory[threadIdx.x].y;
  wait_for_copies();
  __syncthreads();
  w.late[threadIdx.x] = memory[63 - threadIdx.x].y;
}

// A read before the wait finds the old bytes: it is not known when a copy arrives.
TEST(simt, copies_arrive_when_they_are_waited_for) {
  copied w{};
  for (uint32_t i = 0; i < 64; ++i) w.from[i] = {0, i + 7, 0, 0};
  run(copy_and_look, &w, {{1, 1, 1}, 64, 64 * 16});
  for (uint32_t i = 0; i < 64; ++i) {
    EXPECT_EQ(w.early[i], 0xa5a5a5a5u);
    EXPECT_EQ(w.late[i], 63 - i + 7);
  }
  architecture = 75;  // has no such copies
  run(copy_and_look, &w, {{1, 1, 1}, 64, 64 * 16});
  architecture = 90;
  for (uint32_t i = 0; i < 64; ++i) EXPECT_EQ(w.early[i], i + 7);
}

struct begun {
  uint32_t memory = 1, before[2][64] = {}, behind[2][64] = {};
};
void look_around_a_wait(const void* argument) {
  auto& w = *static_cast<begun*>(const_cast<void*>(argument));
  w.before[blockIdx.x][threadIdx.x] = w.memory;
  wait_for_grids();
  w.behind[blockIdx.x][threadIdx.x] = w.memory;
}

// A grid that begins beside another sees that one's writes only after its wait.
TEST(simt, a_grid_begins_before_others_are_through) {
  begun w{};
  early second(look_around_a_wait, &w, {{2, 1, 1}, 64, 0});
  run([](const void* a) { static_cast<begun*>(const_cast<void*>(a))->memory = 2; }, &w,
      {{1, 1, 1}, 64, 0});
  second.finish();
  for (uint32_t i = 0; i < 64; ++i) {
    EXPECT_EQ(w.before[0][i], 1u);
    EXPECT_EQ(w.before[1][i], 2u) << "only the first group begins early";
    EXPECT_EQ(w.behind[0][i], 2u);
    EXPECT_EQ(w.behind[1][i], 2u);
  }
}

// `memory` is requested early by a grid, and written by the grid before.
void request_and_wait(const void* argument) {
  fetch_line_ahead(&static_cast<const begun*>(argument)->memory);
  wait_for_grids();
}
void write_beside_a_request(uint32_t value) {
  begun w{};
  early second(request_and_wait, &w, {{1, 1, 1}, 64, 0, true, "later"});
  w.memory = value;
  second.finish();
}

TEST(simt, memory_that_stays_may_be_requested_before_a_wait) {
  write_beside_a_request(begun{}.memory);
}
TEST(simt_death, memory_that_is_written_may_not_be_requested_before_a_wait) {
  EXPECT_DEATH(write_beside_a_request(2), "requested before a wait is written.*of later");
  const auto behind = [](const void*) {
    wait_for_grids();
    fetch_line_ahead(&here);
  };
  EXPECT_DEATH(run(behind, nullptr, {{1, 1, 1}, 64, 0}), "requested behind a wait");
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

TEST(simt_death, a_thread_that_misses_a_barrier_is_reported) {
  EXPECT_DEATH(missed([](const void*) {
                 if (threadIdx.x != 40) __syncthreads();
               }),
               "or left.*\\[40\\] left");
  EXPECT_DEATH(missed(two_barriers), "different barriers");
}

TEST(simt_death, a_wait_for_grids_comes_first) {
  const auto strict = [](kernel what) { run(what, nullptr, {{1, 1, 1}, 64, 0, true, "some"}); };
  EXPECT_DEATH(strict([](const void*) {
                 if (threadIdx.x != 7) wait_for_grids();
               }),
               "leave that did not wait.*of some: \\[7\\]");
  EXPECT_DEATH(strict([](const void*) {
                 __syncthreads();
                 wait_for_grids();
               }),
               "meet that did not wait");
  EXPECT_DEATH(strict([](const void*) {
                 let_grids_begin();
                 wait_for_grids();
               }),
               "let others begin that did not wait");
}

TEST(simt_death, a_lane_that_misses_an_exchange_is_reported) {
  EXPECT_DEATH(missed([](const void*) {
                 if (threadIdx.x != 5) __shfl_sync(0xffffffffu, 1, 0);
               }),
               "lanes of a warp.*\\[5\\] left");
  EXPECT_DEATH(missed([](const void*) { __shfl_sync(0xffffu, 1, 0); }), "not all lanes");
}

}  // namespace
}  // namespace simt::test

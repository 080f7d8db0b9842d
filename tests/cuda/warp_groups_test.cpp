// What tests of kernels by warp groups rely on: products, boxes and phases as the documents have
// them, done as late as they permit, and an end to what they forbid.

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "simt.hpp"

namespace simt::test {
namespace {

using bitnet::cuda::tensor_map;

tensor_map map_of(const std::vector<uint8_t>& from, uint32_t row_bytes, uint32_t box_bytes,
                  uint32_t box_rows, uint32_t span) {
  const boxes made{boxes::written, reinterpret_cast<uint64_t>(from.data()),
                   row_bytes,      from.size() / row_bytes,
                   row_bytes,      box_bytes,
                   box_rows,       span};
  tensor_map out{};
  std::memcpy(out.words, &made, sizeof made);
  return out;
}
std::vector<uint8_t> random_bytes(size_t n) {
  std::mt19937 random(static_cast<uint32_t>(n));
  std::vector<uint8_t> out(n);
  for (uint8_t& byte : out) byte = static_cast<uint8_t>(random());
  return out;
}
// Where a kernel here puts what the engine copies: aligned, behind its barriers.
uint8_t* aligned(uint32_t to = 1024) {
  auto* p = static_cast<uint8_t*>(shared) + 64;
  return p + (to - shared_address(p) % to) % to;
}

struct boxes_work {
  tensor_map map;
  uint32_t x, y, bytes;
  std::vector<uint8_t>* out;  // what lies in memory of the group
};

TEST(warp_groups, boxes_are_turned_as_the_documents_say_and_end_in_zeros) {
  constexpr uint32_t row_bytes = 208, rows = 21, box_rows = 16;
  const std::vector<uint8_t> from = random_bytes(size_t{row_bytes} * rows);
  for (const uint32_t span : {0u, 32u, 64u, 128u}) {
    SCOPED_TRACE(span);
    const uint32_t box_bytes = span == 0 ? 48 : span;
    std::vector<uint8_t> out;
    const boxes_work w{map_of(from, row_bytes, box_bytes, box_rows, span), 160, 9,
                       box_bytes * box_rows, &out};
    run(
        [](const void* a) {
          const auto& work = *static_cast<const boxes_work*>(a);
          auto* barrier = static_cast<phase_barrier*>(shared);
          uint8_t* to = aligned();
          if (threadIdx.x == 0) begin_barrier(barrier, 1);
          __syncthreads();
          if (threadIdx.x == 0) {
            arrive_expecting(barrier, work.bytes);
            copy_box(to, work.map, work.x, work.y, barrier);
            work.out->assign(to, to + work.bytes);  // too early: nothing is there yet
            for (const uint8_t byte : *work.out) EXPECT_EQ(byte, 0xa5);
          }
          wait_for_phase(barrier, 0);
          if (threadIdx.x == 0) work.out->assign(to, to + work.bytes);
        },
        &w, {{1, 1, 1}, 32, 8192});
    for (uint32_t row = 0; row < box_rows; ++row)
      for (uint32_t byte = 0; byte < box_bytes; ++byte) {
        // CUDA C++ Programming Guide, "Shared memory bank swizzling": pieces of 16 bytes change
        // places with the number of the 128 bytes that they lie in.
        const uint32_t plain = row * box_bytes + byte, line = plain / 128;
        const uint32_t piece = span == 0 ? 0 : line % (span / 16);
        const bool inside = w.y + row < rows && w.x + byte < row_bytes;
        const uint32_t at = (w.y + row) * row_bytes + w.x + byte;
        ASSERT_EQ(out[plain ^ piece * 16], inside ? from[at] : 0) << row << " " << byte;
      }
  }
}

template <uint32_t N>
struct product_work {
  tensor_map b;
  const std::vector<uint8_t>* a;  // (stages, 64, 32)
  std::vector<int>* c;            // (64, N)
  static constexpr uint32_t stages = 4, box = N * 128;
};
// Four products of 32 bytes out of one box, and again out of a second one.
template <uint32_t N>
void multiply_boxes(const void* argument) {
  const auto& work = *static_cast<const product_work<N>*>(argument);
  auto* barrier = static_cast<phase_barrier*>(shared);
  uint8_t* to = aligned();
  if (threadIdx.x == 0) {
    begin_barrier(barrier, 1);
    show_barriers();
  }
  __syncthreads();
  int c[N / 2];
  const uint32_t lane = threadIdx.x % 32, row = threadIdx.x / 32 * 16 + lane / 4;
  for (int& one : c) one = 7;
  for (uint32_t turn = 0; turn < 2; ++turn) {
    if (threadIdx.x == 0) {
      arrive_expecting(barrier, work.box);
      copy_box(to, work.b, turn * 128, 0, barrier);
    }
    wait_for_phase(barrier, turn);
    begin_batch();
    for (uint32_t k = 0; k < work.stages; ++k) {
      uint32_t a[4];
      for (uint32_t i = 0; i < 4; ++i)
        std::memcpy(&a[i],
                    work.a->data() + ((turn * work.stages + k) * 64 + row + i % 2 * 8) * 32 +
                        (lane % 4 + i / 2 * 4) * 4,
                    4);
      multiply_warp_group<N>(c, a, columns_at(to + k * 32));
    }
    end_batch();
    wait_for_batches<0>();
    __syncthreads();
  }
  for (uint32_t i = 0; i < N / 2; ++i)
    (*work.c)[(row + i / 2 % 2 * 8) * N + i / 4 * 8 + lane % 4 * 2 + i % 2] = c[i];
}
template <uint32_t N>
void expect_products() {
  const std::vector<uint8_t> a = random_bytes(size_t{8} * 64 * 32),
                             b = random_bytes(size_t{N} * 256);
  std::vector<int> c(size_t{64} * N);
  const product_work<N> w{map_of(b, 256, 128, N, 128), &a, &c};
  run(multiply_boxes<N>, &w, {{1, 1, 1}, 128, 64 + 1024 + w.box});
  for (uint32_t row = 0; row < 64; ++row)
    for (uint32_t column = 0; column < N; ++column) {
      int sum = 7;
      for (uint32_t k = 0; k < 256; ++k)
        sum += static_cast<int8_t>(a[(k / 32 * 64 + row) * 32 + k % 32]) *
               static_cast<int8_t>(b[column * 256 + k]);
      ASSERT_EQ(c[row * N + column], sum) << row << " " << column;
    }
}
TEST(warp_groups, products_of_64_columns) {
  expect_products<64>();
}
TEST(warp_groups, products_of_128_columns) {
  expect_products<128>();
}

// What ends the process, each as a kernel of one warp group.
void run_one(kernel function) {
  run(function, nullptr, {{1, 1, 1}, 128, 16384});
}
void with_barrier(uint32_t arrivals) {
  if (threadIdx.x == 0) begin_barrier(static_cast<phase_barrier*>(shared), arrivals);
  __syncthreads();
}
void multiply_once(int (&c)[32]) {
  const uint32_t a[4] = {};
  begin_batch();
  multiply_warp_group<64>(c, a, columns_at(aligned()));
  end_batch();
}

const struct {
  const char* says;
  kernel function;
} forbidden[] = {
    {"a barrier that was not begun",
     [](const void*) { arrive(static_cast<phase_barrier*>(shared)); }},
    {"a barrier that is there already",
     [](const void*) { begin_barrier(static_cast<phase_barrier*>(shared), 1); }},
    {"more arrivals than a phase has",
     [](const void*) {
       with_barrier(1);
       arrive_expecting(static_cast<phase_barrier*>(shared), 16);
     }},
    {"phase:",  // nobody comes
     [](const void*) {
       with_barrier(1);
       wait_for_phase(static_cast<phase_barrier*>(shared), 0);
     }},
    {"a tensor map that nobody made",
     [](const void*) {
       with_barrier(1);
       copy_box(aligned(), tensor_map{}, 0, 0, static_cast<phase_barrier*>(shared));
     }},
    {"products without begin_batch",
     [](const void*) {
       int c[32] = {};
       const uint32_t a[4] = {};
       multiply_warp_group<64>(c, a, columns_at(aligned()));
     }},
    {"an operand whose swizzle",
     [](const void*) {
       int c[32] = {};
       const uint32_t a[4] = {};
       begin_batch();
       multiply_warp_group<64>(c, a, columns_at(aligned()) & ~(uint64_t{3} << 62));
     }},
    {"products that nobody waited for",
     [](const void*) {
       static thread_local int c[128][32];
       multiply_once(c[threadIdx.x]);
     }},
    {"sums were written while products are added to them",
     [](const void*) {
       int c[32] = {};
       multiply_once(c);
       c[3] = 0;
       wait_for_batches<0>();
     }},
    {"lanes of a warp have batches of different length",
     [](const void*) {
       int c[32] = {};
       const uint32_t a[4] = {};
       begin_batch();
       for (uint32_t i = 0; i < 1 + threadIdx.x % 2; ++i)
         multiply_warp_group<64>(c, a, columns_at(aligned()));
       end_batch();
       wait_for_batches<0>();
     }},
};
TEST(warp_groups, what_is_forbidden_ends_the_process) {
  for (const auto& row : forbidden) {
    SCOPED_TRACE(row.says);
    EXPECT_DEATH(run_one(row.function), row.says);
  }
}

TEST(warp_groups, other_architectures_have_none) {
  architecture = 100;
  EXPECT_DEATH(run_one([](const void*) { begin_batch(); }), "what only sm_90 has");
  architecture = 90;
}

}  // namespace
}  // namespace simt::test

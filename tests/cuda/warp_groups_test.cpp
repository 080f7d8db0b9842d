// What kernels of sm_90 rely on: barriers with phases, boxes that arrive when they are waited for,
// products of warp groups, and that misuse of each ends the process.

#include "simt.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "plugins/cuda/kernels/launch.hpp"

namespace simt::test {
namespace {

using bitnet::kernels::tensor_map;

tensor_map encoded(const void* from, uint64_t width, uint64_t rows, uint64_t stride,
                   uint32_t box_bytes, uint32_t box_rows, uint32_t swizzle) {
  const box_map m{
      box_magic, static_cast<const unsigned char*>(from), width, rows, stride, box_bytes, box_rows,
      swizzle};
  tensor_map out{};
  std::memcpy(&out, &m, sizeof m);
  return out;
}

// Where parts that are turned begin again.
unsigned char* turned_memory() {
  auto* memory = static_cast<unsigned char*>(shared_memory());
  return memory + (1024 - shared_address(memory) % 1024) % 1024;
}

// What a kernel forgets.
enum class wrong : uint8_t {
  nothing,
  no_show,
  no_wait_for_boxes,
  no_wait_for_room,
  room_too_early,
  too_many_bytes,
  too_few_bytes,
  too_many_arrivals,
  no_begin_batch,
  no_end_batch,
  no_wait_at_end,
  sums_touched,
  one_warp_less,
  other_columns,
  other_lane,
  box_never_awaited,
};

// c, 64 rows of N, is the products of rows of a by columns of b.
constexpr uint32_t depth = 4 * 128, consumers = 128, producers = 32;
struct matrices {
  tensor_map box;  // 128 bytes of each column of b
  const int8_t* a;
  int* c;
  wrong how = wrong::nothing;
};
template <uint32_t N>
struct pipeline {
  static constexpr uint32_t stage = N * 128, bytes = 1024 + 2 * stage + 4 * 8;
  unsigned char* memory = turned_memory();
  phase_barrier* full = reinterpret_cast<phase_barrier*>(memory + 2 * stage);
  phase_barrier* empty = full + 2;
};

template <uint32_t N>
void begin(const pipeline<N>& p, wrong how) {
  if (threadIdx.x == 0) {
    for (uint32_t s = 0; s < 2; ++s) {
      begin_barrier(&p.full[s], 1);
      begin_barrier(&p.empty[s], consumers / 32);
    }
    if (how != wrong::no_show) show_barriers();
  }
  __syncthreads();
}

template <uint32_t N>
void produce(const pipeline<N>& p, const matrices& m) {
  for (uint32_t step = 0; step < depth / 128; ++step) {
    const uint32_t s = step % 2;
    if (m.how != wrong::no_wait_for_room) wait_for_phase(&p.empty[s], step / 2 % 2 ^ 1);
    uint32_t bytes = p.stage;
    if (m.how == wrong::too_many_bytes) bytes -= 16;
    if (m.how == wrong::too_few_bytes) bytes += 16;
    arrive_expecting(&p.full[s], bytes);
    if (m.how == wrong::too_many_arrivals) arrive(&p.full[s]);
    copy_box(p.memory + s * p.stage, m.box, step * 128, 0, &p.full[s]);
  }
  if (m.how == wrong::box_never_awaited) {
    wait_for_phase(&p.empty[0], 1);
    arrive_expecting(&p.full[0], p.stage);
    copy_box(p.memory, m.box, 0, 0, &p.full[0]);
  }
}

template <uint32_t N>
void multiply_stage(int (&c)[N / 2], const pipeline<N>& p, const matrices& m, uint32_t step) {
  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (m.how != wrong::no_begin_batch) begin_batch();
  const uint32_t count = m.how == wrong::one_warp_less && warp == 2 && step == 3 ? 3 : 4;
  for (uint32_t k = 0; k < count; ++k) {
    uint32_t a[4];
    for (uint32_t i = 0; i < 4; ++i) {
      const uint32_t row = warp * 16 + lane / 4 + i % 2 * 8, word = lane % 4 + i / 2 * 4;
      std::memcpy(&a[i], m.a + size_t{row} * depth + step * 128 + k * 32 + word * 4, 4);
    }
    uint32_t part = k;
    if (m.how == wrong::other_columns && warp == 1) part = 3 - k;
    if (m.how == wrong::other_lane && lane == 9) part = 3 - k;
    multiply_warp_group<N>(c, a, columns_at(p.memory + step % 2 * p.stage + part * 32));
  }
  if (m.how != wrong::no_end_batch) end_batch();
}

template <uint32_t N>
void consume(const pipeline<N>& p, const matrices& m) {
  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int c[N / 2];
  for (uint32_t i = 0; i < N / 2; ++i) c[i] = 7;
  for (uint32_t step = 0; step < depth / 128; ++step) {
    if (m.how != wrong::no_wait_for_boxes || warp != 3)
      wait_for_phase(&p.full[step % 2], step / 2 % 2);
    multiply_stage<N>(c, p, m, step);
    if (m.how == wrong::sums_touched && threadIdx.x == 77) c[5] += 1;
    if (m.how == wrong::room_too_early && lane == 0) arrive(&p.empty[step % 2]);
    wait_for_batches<1>();
    if (m.how != wrong::room_too_early && lane == 0 && step > 0) arrive(&p.empty[(step - 1) % 2]);
  }
  if (m.how != wrong::no_wait_at_end) wait_for_batches<0>();
  keep_behind(c);
  if (lane == 0 && m.how != wrong::room_too_early) arrive(&p.empty[1]);
  for (uint32_t i = 0; i < N / 2; ++i)
    m.c[(warp * 16 + lane / 4 + i % 4 / 2 * 8) * N + i / 4 * 8 + lane % 4 * 2 + i % 2] = c[i];
}

template <uint32_t N>
void multiply_matrices(const void* argument) {
  const auto& m = *static_cast<const matrices*>(argument);
  const pipeline<N> p;
  begin(p, m.how);
  if (threadIdx.x < consumers)
    consume<N>(p, m);
  else if (threadIdx.x == consumers)
    produce(p, m);
}

std::vector<int8_t> numbers(size_t count, size_t step) {
  std::vector<int8_t> out(count);
  for (size_t i = 0; i < count; ++i) out[i] = static_cast<int8_t>(i * step % 255 - 128);
  return out;
}

template <uint32_t N>
void expect_products(wrong how) {
  const std::vector<int8_t> a = numbers(size_t{64} * depth, 37), b = numbers(size_t{N} * depth, 53);
  std::vector<int> c(size_t{64} * N);
  const matrices m{encoded(b.data(), depth, N, depth, 128, N, 128), a.data(), c.data(), how};
  run(multiply_matrices<N>, &m,
      {{1, 1, 1}, consumers + producers, pipeline<N>::bytes, false, "products"});
  for (size_t row = 0; row < 64; ++row)
    for (size_t column = 0; column < N; ++column) {
      int expected = 7;
      for (size_t k = 0; k < depth; ++k) expected += a[row * depth + k] * b[column * depth + k];
      ASSERT_EQ(c[row * N + column], expected) << row << ", " << column;
    }
}

TEST(warp_groups, a_pipeline_multiplies_64_columns) {
  expect_products<64>(wrong::nothing);
}
TEST(warp_groups, a_pipeline_multiplies_128_columns) {
  expect_products<128>(wrong::nothing);
}

// Sums wrap, and the largest products of bytes fit.
TEST(warp_groups, products_of_the_least_numbers_are_right) {
  const std::vector<int8_t> least(size_t{64} * depth, -128);
  std::vector<int> c(size_t{64} * 64);
  const matrices m{encoded(least.data(), depth, 64, depth, 128, 64, 128), least.data(), c.data()};
  run(multiply_matrices<64>, &m, {{1, 1, 1}, consumers + producers, pipeline<64>::bytes});
  for (const int sum : c) ASSERT_EQ(sum, 7 + 16384 * static_cast<int>(depth));
}

// One box, and what is in memory before and after a wait.
struct boxed {
  tensor_map map;
  uint32_t x, y, bytes;
  uint64_t late = 0;  // bytes from where a box may begin
  unsigned char early[128 * 8], memory[128 * 8];
};
void copy_one_box(const void* argument) {
  auto& w = *static_cast<boxed*>(const_cast<void*>(argument));
  unsigned char* memory = turned_memory();
  auto* b = reinterpret_cast<phase_barrier*>(memory + 2048);
  if (threadIdx.x == 0) {
    begin_barrier(b, 1);
    show_barriers();
    copy_box(memory + w.late, w.map, w.x, w.y, b);
    std::memcpy(w.early, memory, sizeof w.early);
    arrive_expecting(b, w.bytes);
  }
  __syncthreads();
  wait_for_phase(b, 0);
  if (threadIdx.x == 31) std::memcpy(w.memory, memory, sizeof w.memory);
}
void run_box(boxed& w) {
  run(copy_one_box, &w, {{1, 1, 1}, 32, 1024 + 2048 + 8});
}

// CUDA programming guide, "Swizzle modes": the pattern of each, written for boxes that begin where
// it does.
TEST(warp_groups, boxes_are_turned_and_end_in_zeros) {
  constexpr uint32_t rows = 6, stride = 208, width = 201, box_rows = 8;
  const std::vector<int8_t> from = numbers(size_t{rows} * stride, 3);
  const struct {
    uint32_t swizzle, rows_alike, parts;
  } kinds[] = {{0, 1, 1}, {32, 4, 2}, {64, 2, 4}, {128, 1, 8}};
  for (const auto& [swizzle, rows_alike, parts] : kinds)
    for (const uint32_t x : {0u, 16u, 144u, 192u, 208u})
      for (const uint32_t y : {0u, 1u, 4u, 6u}) {
        const uint32_t bytes = swizzle == 0 ? 48 : swizzle;
        boxed w{encoded(from.data(), width, rows, stride, bytes, box_rows, swizzle),
                x,
                y,
                bytes * box_rows,
                0,
                {},
                {}};
        run_box(w);
        for (uint32_t i = 0; i < bytes * box_rows; ++i) {
          const uint32_t row = i / bytes, k = i % bytes;
          const uint32_t part = (k / 16) ^ (row / rows_alike % parts);
          const bool inside = x + k < width && y + row < rows;
          const int8_t expected = inside ? from[(y + row) * stride + x + k] : int8_t{0};
          ASSERT_EQ(static_cast<int8_t>(w.memory[row * bytes + part * 16 + k % 16]), expected)
              << "swizzle " << swizzle << " at " << x << ", " << y << ": " << row << ", " << k;
          ASSERT_EQ(w.early[i], 0x96) << "it arrives when it is waited for";
        }
      }
}

// Two warps, of which one lane each goes on in turns.
TEST(warp_groups, lanes_wait_for_phases_one_by_one) {
  std::vector<uint32_t> out;
  run(
      [](const void* argument) {
        auto& seen = *static_cast<std::vector<uint32_t>*>(const_cast<void*>(argument));
        auto* b = static_cast<phase_barrier*>(shared_memory());
        if (threadIdx.x == 0) {
          begin_barrier(&b[0], 1);
          begin_barrier(&b[1], 1);
          show_barriers();
        }
        __syncthreads();
        const uint32_t warp = threadIdx.x / 32;
        if (threadIdx.x % 32 == 3)
          for (uint32_t turn = 0; turn < 5; ++turn) {
            if (warp == 1) wait_for_phase(&b[0], turn % 2);
            seen.push_back(turn * 2 + warp);
            arrive(&b[warp]);
            if (warp == 0) wait_for_phase(&b[1], turn % 2);
          }
        seen.push_back(100 + static_cast<uint32_t>(__ballot_sync(0xffffffffu, true) == 0));
      },
      &out, {{1, 1, 1}, 64, 16});
  out.resize(10);
  for (uint32_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i], i);
}

// Pointers and addresses are aligned alike, and no more than a device promises.
TEST(warp_groups, memory_begins_at_16_bytes) {
  run(
      [](const void*) {
        EXPECT_EQ(shared_address(shared), reinterpret_cast<uintptr_t>(shared) % 1024 + 1024);
        EXPECT_NE(shared_address(shared) % 128, 0u);
        EXPECT_EQ(shared_address(shared) % 16, 0u);
      },
      nullptr, {{1, 1, 1}, 32, 64});
}

TEST(warp_groups_death, a_pipeline_that_forgets_something_is_stopped) {
  const struct {
    wrong how;
    const char* sentence;
  } all[] = {
      {wrong::no_show, "was not shown"},
      {wrong::no_wait_for_boxes, "did not wait for"},
      {wrong::no_wait_for_room, "more arrive at a barrier"},
      {wrong::room_too_early, "memory was written before products"},
      {wrong::too_many_bytes, "more bytes are copied"},
      {wrong::too_few_bytes, "no thread can go on.*\\[0\\] phase.*\\[128\\] phase.*\\[129\\] left"},
      {wrong::too_many_arrivals, "more arrive at a barrier"},
      {wrong::no_begin_batch, "without begin_batch"},
      {wrong::no_end_batch, "in no batch"},
      {wrong::no_wait_at_end, "did not wait for products"},
      {wrong::sums_touched, "sums were touched.*\\[77\\]"},
      {wrong::one_warp_less, "fewer products|different products"},
      {wrong::other_columns, "warps of a warp group make different"},
      {wrong::other_lane, "lanes of a warp make different"},
      {wrong::box_never_awaited, "boxes have not arrived"},
  };
  for (const auto& [how, sentence] : all)
    EXPECT_DEATH(expect_products<64>(how), sentence) << static_cast<int>(how);
}

void with_memory(kernel what, unsigned int threads = 32) {
  run(what, nullptr, {{1, 1, 1}, threads, 4096, false, "some"});
}
phase_barrier* a_barrier() {
  return static_cast<phase_barrier*>(shared_memory());
}

TEST(warp_groups_death, misused_barriers_are_reported) {
  EXPECT_DEATH(with_memory([](const void*) { begin_barrier(a_barrier(), 1); }), "began already");
  EXPECT_DEATH(with_memory([](const void*) { begin_barrier(a_barrier(), 0); }), "of so many");
  EXPECT_DEATH(with_memory([](const void*) { arrive(a_barrier()); }), "did not begin");
  EXPECT_DEATH(with_memory([](const void*) {
                 static phase_barrier outside;
                 arrive(&outside);
               }),
               "not in memory of the group");
  EXPECT_DEATH(with_memory([](const void*) {
                 if (threadIdx.x == 0) begin_barrier(a_barrier(), 32);
                 if (threadIdx.x == 0) show_barriers();
                 arrive(a_barrier());
               }),
               "no __syncthreads.*\\[1\\]");
  EXPECT_DEATH(with_memory([](const void*) {
                 if (threadIdx.x == 0) begin_barrier(a_barrier(), 32);
                 __syncthreads();
                 arrive(a_barrier());
               }),
               "was not shown.*\\[1\\]");
  EXPECT_DEATH(with_memory([](const void*) {
                 if (threadIdx.x != 0) return;
                 begin_barrier(a_barrier(), 1);
                 *a_barrier() = 0;
                 arrive(a_barrier());
               }),
               "written over");
  EXPECT_DEATH(with_memory([](const void*) {
                 if (threadIdx.x != 0) return;
                 begin_barrier(a_barrier(), 1);
                 wait_for_phase(a_barrier(), 2);
               }),
               "parity");
}

// A phase that its waiters miss, since two ended before they went on.
TEST(warp_groups_death, a_phase_that_was_missed_is_seen) {
  EXPECT_DEATH(with_memory(
                   [](const void*) {
                     if (threadIdx.x == 0) begin_barrier(a_barrier(), 1);
                     if (threadIdx.x == 0) show_barriers();
                     __syncthreads();
                     if (threadIdx.x == 0) wait_for_phase(a_barrier(), 0);
                     if (threadIdx.x == 32) arrive(a_barrier());
                     if (threadIdx.x == 32) arrive(a_barrier());
                   },
                   64),
               "a phase ends before");
}

TEST(warp_groups_death, misplaced_boxes_are_reported) {
  const std::vector<int8_t> from(size_t{128} * 8);
  const auto copy = [&](uint32_t box_bytes, uint32_t swizzle, uint32_t x, uint64_t late) {
    boxed w{encoded(from.data(), 128, 8, 128, box_bytes, 8, swizzle),
            x,
            0,
            box_bytes * 8,
            late,
            {},
            {}};
    run_box(w);
  };
  EXPECT_DEATH(copy(128, 128, 0, 128), "address that is not aligned");
  EXPECT_DEATH(copy(64, 64, 0, 256), "address that is not aligned");
  EXPECT_DEATH(copy(64, 0, 0, 64), "address that is not aligned");
  EXPECT_DEATH(copy(64, 0, 8, 0), "within 16 bytes");
  EXPECT_DEATH(copy(64, 128, 0, 0), "not as long as its swizzle");
  EXPECT_DEATH(copy(128, 0, 0, 1920), "over a barrier|not in memory");
  boxed without{};
  EXPECT_DEATH(run_box(without), "was not encoded");
}

void write_behind_a_box(const void* argument) {
  const auto& w = *static_cast<const boxed*>(argument);
  unsigned char* memory = turned_memory();
  auto* b = reinterpret_cast<phase_barrier*>(memory + 2048);
  if (threadIdx.x != 0) return;
  begin_barrier(b, 1);
  show_barriers();
  arrive_expecting(b, w.bytes);
  copy_box(memory, w.map, 0, 0, b);
  if (w.x == 1) copy_box(memory + 128, w.map, 0, 0, b);
  memory[17] = 1;
  wait_for_phase(b, 0);
}
TEST(warp_groups_death, no_write_where_a_box_arrives) {
  const std::vector<int8_t> from(size_t{128} * 8);
  boxed w{encoded(from.data(), 128, 8, 128, 128, 8, 0), 0, 0, 1024, 0, {}, {}};
  const auto write = [&] { run(write_behind_a_box, &w, {{1, 1, 1}, 32, 1024 + 2048 + 8}); };
  EXPECT_DEATH(write(), "written while a box");
  w.x = 1;
  EXPECT_DEATH(write(), "over one that has not arrived");
}

// Numbers of a are ones; each of the four parts of a column's row has its own number.
void multiply_anew(const void* argument) {
  auto& wrong_sums = *static_cast<int*>(const_cast<void*>(argument));
  unsigned char* memory = turned_memory();
  for (uint32_t i = 0; i < 128; ++i) {
    const uint32_t part = (i / 16 ^ threadIdx.x % 8) / 2;
    memory[threadIdx.x * 128 + i] = static_cast<unsigned char>(part);
  }
  __syncthreads();
  const uint64_t columns = columns_at(memory);
  const uint32_t a[4] = {0x01010101, 0x01010101, 0x01010101, 0x01010101};
  int c[64];
  for (int& one : c) one = 7;
  const struct {
    uint32_t part;
    int wanted;
    bool adds, anew;
  } steps[] = {
      {1, 32, false, true}, {2, 96, true, false}, {3, 96, false, false}, {3, 192, true, false}};
  for (const auto& step : steps) {
    begin_batch();
    if (step.anew)
      multiply_warp_group_anew(c, a, next_columns(columns, 32 * step.part));
    else
      multiply_warp_group_into(c, a, next_columns(columns, 32 * step.part), step.adds);
    end_batch();
    wait_for_batches<0>();
    keep_behind(c);
    for (const int one : c) wrong_sums += one != step.wanted;
  }
}
TEST(warp_groups, products_begin_anew_or_are_added) {
  int wrong_sums = 0;
  run(multiply_anew, &wrong_sums, {{1, 1, 1}, 128, 1024 + 128 * 128, false, "some"});
  EXPECT_EQ(wrong_sums, 0);
}

// Products of 64 columns at a descriptor.
void multiply_at(uint64_t descriptor, unsigned int threads) {
  run(
      [](const void* d) {
        int c[32] = {};
        const uint32_t a[4] = {};
        begin_batch();
        multiply_warp_group<64>(c, a, *static_cast<const uint64_t*>(d));
        end_batch();
        wait_for_batches<0>();
      },
      &descriptor, {{1, 1, 1}, threads, 1024 + 64 * 128, false, "some"});
}
TEST(warp_groups_death, descriptors_say_what_is_known) {
  constexpr uint64_t right =
      2048 >> 4 | uint64_t{1} << 16 | uint64_t{1024 >> 4} << 32 | uint64_t{1} << 62;
  multiply_at(right, 128);
  multiply_at(right + 6, 128);
  EXPECT_DEATH(multiply_at(right, 96), "lacks warps");
  EXPECT_DEATH(multiply_at(right ^ uint64_t{3} << 62, 128), "128-byte swizzle");
  EXPECT_DEATH(multiply_at(right | uint64_t{1} << 49, 128), "128-byte swizzle");
  EXPECT_DEATH(multiply_at(right + 8, 128), "not aligned");
  EXPECT_DEATH(multiply_at(right + 7, 128), "not aligned");
  EXPECT_DEATH(multiply_at(right + 64, 128), "columns that are not in memory");
  EXPECT_DEATH(multiply_at(right - 64, 128), "columns that are not in memory");
}

TEST(warp_groups_death, other_devices_reject_every_instruction) {
  const kernel all[] = {[](const void*) { begin_barrier(a_barrier(), 1); },
                        [](const void*) { show_barriers(); },
                        [](const void*) { arrive(a_barrier()); },
                        [](const void*) { arrive_expecting(a_barrier(), 16); },
                        [](const void*) { wait_for_phase(a_barrier(), 0); },
                        [](const void*) { copy_box(shared, tensor_map{}, 0, 0, a_barrier()); },
                        [](const void*) {
                          int c[64];
                          const uint32_t a[4] = {};
                          multiply_warp_group<128>(c, a, 0);
                        },
                        [](const void*) {
                          int c[64];
                          const uint32_t a[4] = {};
                          multiply_warp_group_anew(c, a, 0);
                        },
                        [](const void*) {
                          int c[64];
                          const uint32_t a[4] = {};
                          multiply_warp_group_into(c, a, 0, true);
                        },
                        [](const void*) { begin_batch(); },
                        [](const void*) { end_batch(); },
                        [](const void*) { wait_for_batches<0>(); }};
  for (const int other : {80, 89, 100, 120})
    for (const kernel one : all)
      EXPECT_DEATH(
          {
            architecture = other;
            with_memory(one);
          },
          "but on sm_90");
}

TEST(warp_groups_death, a_wait_for_grids_comes_first) {
  const auto strict = [](kernel what) { run(what, nullptr, {{1, 1, 1}, 32, 64, true, "some"}); };
  EXPECT_DEATH(strict([](const void*) { begin_barrier(a_barrier(), 1); }),
               "begin barriers that did not wait");
  EXPECT_DEATH(strict([](const void*) { begin_batch(); }), "multiply that did not wait");
  EXPECT_DEATH(strict([](const void*) { arrive(a_barrier()); }), "arrive that did not wait");
}

}  // namespace
}  // namespace simt::test

// Opened and closed again and again, replaced while sessions live, and nothing left behind.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "model/kv_types.hpp"
#include "model/tiny_model.hpp"
#include "suites/plugin_copy.hpp"
#include "suites/process_state.hpp"
#include "suites/trial.hpp"

namespace bitnet::conformance {
namespace {

const std::vector<token_in> long_prompt = {{3}, {1}, {4}, {1}, {5}, {9}, {2}, {6}, {5}, {3}, {5}};

uint32_t life_flags(const opened& one) {
  bitnet_backend_info info{};
  info.struct_size = sizeof info;
  must([&](bitnet_error* e) { return one.table().info(one.table().self, &info, e); });
  return info.life_flags;
}

void count_devices(const opened& one) {
  uint32_t n = 0;
  must([&](bitnet_error* e) { return one.table().device_count(one.table().self, &n, e); });
}

// One life of a backend; every tenth one computes.
void live(int round, const model* m) {
  opened_device d;
  count_devices(d.backend);
  d.info();
  d.list_kernels();
  bitnet_buffer* b = nullptr;
  const outcome made =
      attempt([&](bitnet_error* e) { return create_buffer(d.table(), d.device, 4096, &b, e); });
  if (made.status == BITNET_OK) d.table().buffer_destroy(b);
  if (m == nullptr || round % 10 != 0) return;
  runner_options o;
  o.opened = d.device;
  runner r(d.table(), *m, o);
  r.run({{1}, {2}});
}

TEST(lifecycle, two_hundred_openings_leave_nothing) {
  const tiny_model m({});
  const model* computes = nullptr;
  {
    const opened_device d;
    if (missing_ops(d, m).empty()) computes = &m;
  }
  constexpr int openings = 200, warm_up = 20;
  // Two steps of the allocator's heap; a lost opening of a kilobyte stays below, one of 50 does
  // not.
  constexpr uint64_t allowance = 8u << 20;
  // The most of the first rounds: a system that takes back what was not touched for a while makes
  // the resident part smaller, and the next touch makes it larger again.
  uint64_t threads = 0, descriptors = 0, first = 0, resident = 0;
  for (int round = 0; round < openings; ++round) {
    // Enough to end before a leak takes the machine's memory.
    if (round == warm_up || round == 2) {
      threads = running_threads();
      descriptors = open_descriptors();
    }
    live(round, computes);
    const uint64_t now = resident_bytes();
    if (round < 2) continue;
    if (round == 2) first = now;
    if (round <= warm_up) resident = std::max(resident, now);
    ASSERT_LE(now, round <= warm_up ? first + 8 * allowance : resident + allowance)
        << "resident bytes grew from " << resident << " in " << round + 1 << " openings";
    ASSERT_LE(threads_left(threads), threads)
        << "threads are left after " << round + 1 << " openings";
    ASSERT_LE(open_descriptors(), descriptors) << "descriptors after " << round + 1 << " openings";
  }
}

TEST(lifecycle, close_ends_every_thread) {
  entry_of_plugin();
  const uint64_t before = running_threads();
  {
    const opened one;
    count_devices(one);
    const opened_device d;
    if ((life_flags(one) & BITNET_LIFE_THREAD_FREE) != 0) {
      EXPECT_EQ(threads_left(before), before) << "it declares BITNET_LIFE_THREAD_FREE";
    }
  }
  EXPECT_EQ(threads_left(before), before) << "threads run after close";
}

TEST(lifecycle, quiesce_ends_what_is_pending) {
  opened_device d;
  const tiny_model m({});
  if (const std::string missing = missing_ops(d, m); !missing.empty())
    GTEST_SKIP() << "graph_query answers none for " << missing;
  runner_options o;
  o.opened = d.device;
  runner r(d.table(), m, o);
  const bitnet_step step = r.prepare(long_prompt);
  must([&](bitnet_error* e) { return d.table().queue_submit(r.queue, &step, e); });
  settle(d.table());
  uint64_t at = 0;
  must([&](bitnet_error* e) { return d.table().queue_poll(r.queue, &at, e); });
  EXPECT_EQ(at, step.signal_value) << "device work is pending after quiesce";
}

// The blocks of a sequence move from one runner to another, which goes on with it.
void move_on(const opened_device& from, const opened_device& to, const model& m, uint32_t dtype) {
  runner_options a, b;
  a.opened = from.device;
  b.opened = to.device;
  a.dtype_k = a.dtype_v = b.dtype_k = b.dtype_v = dtype;
  runner whole(from.table(), m, a), first(from.table(), m, a), second(to.table(), m, b);
  const std::vector<float> before = whole.run({long_prompt.begin(), long_prompt.begin() + 8});
  const std::vector<float> expected = whole.run({long_prompt.begin() + 8, long_prompt.end()});
  EXPECT_TRUE(same_bits(before, first.run({long_prompt.begin(), long_prompt.begin() + 8})));
  second.prepare(
      {long_prompt.begin(), long_prompt.begin() + 8});  // moves its positions on, computes nothing
  std::vector<uint8_t> block(first.block_bytes), again(first.block_bytes);
  for (int i = 0; i < 2; ++i) {
    const auto id = static_cast<uint32_t>(first.block_tables[i]);
    EXPECT_EQ(first.export_blocks({&id, 1}, block).status, BITNET_OK);
    EXPECT_EQ(second.import_blocks({&id, 1}, block).status, BITNET_OK);
    EXPECT_EQ(second.export_blocks({&id, 1}, again).status, BITNET_OK);
    EXPECT_EQ(std::memcmp(block.data(), again.data(), block.size()), 0) << "block " << i;
  }
  EXPECT_TRUE(same_bits(second.run({long_prompt.begin() + 8, long_prompt.end()}), expected));
}

TEST(lifecycle, exported_blocks_go_on_elsewhere) {
  const opened_device from, to;
  const tiny_model m({});
  if (const std::string missing = missing_ops(from, m); !missing.empty())
    GTEST_SKIP() << "graph_query answers none for " << missing;
  uint64_t moved = 0;
  for (const kv_type& type : all_kv_types) {
    if (!keeps(from.info().kv_dtypes, type.dtype)) continue;
    move_on(from, to, m, type.dtype);
    ++moved;
  }
  if (moved == 0) GTEST_SKIP() << "the device has no such KV pools";
}

TEST(lifecycle, two_generations_serve_side_by_side) {
  const opened_device first;
  if ((life_flags(first.backend) & BITNET_LIFE_HOT_SWAP) == 0)
    GTEST_SKIP() << "it does not declare BITNET_LIFE_HOT_SWAP";
  plugin_copy copy;
  ASSERT_NE(copy.entry(), nullptr);
  open_how how;
  how.generation = 2;
  how.entry = copy.entry();
  const opened_device second(how);
  const tiny_model m({});
  if (const std::string missing = missing_ops(first, m); !missing.empty())
    GTEST_SKIP() << "graph_query answers none for " << missing;
  move_on(first, second, m, BITNET_DTYPE_F16);
}

}  // namespace
}  // namespace bitnet::conformance

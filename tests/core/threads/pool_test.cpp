#include "threads/pool.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <thread>
#include <vector>

namespace bitnet::threads {
namespace {

struct tally {
  std::atomic<uint32_t> calls{0};
  std::atomic<uint32_t> seen{0};  // one bit per worker
};

void count(void* arg, uint32_t worker, uint32_t n) {
  auto& t = *static_cast<tally*>(arg);
  EXPECT_LT(worker, n);
  t.calls.fetch_add(1);
  t.seen.fetch_or(1U << worker);
}

TEST(pool, runs_each_share_once) {
  for (const uint32_t width : {1U, 2U, 3U, 8U}) {
    pool p(width);
    for (uint32_t n = 1; n <= width; ++n) {
      tally t;
      ASSERT_EQ(p.run(n, count, &t), BITNET_OK);
      EXPECT_EQ(t.calls, n) << "width " << width;
      EXPECT_EQ(t.seen, (1U << n) - 1) << "width " << width;
    }
  }
}

TEST(pool, refuses_what_it_cannot_run) {
  pool p(2);
  tally t;
  EXPECT_EQ(p.run(0, count, &t), BITNET_INVALID_ARGUMENT);
  EXPECT_EQ(p.run(3, count, &t), BITNET_INVALID_ARGUMENT);
  EXPECT_EQ(p.run(1, nullptr, &t), BITNET_INVALID_ARGUMENT);
  EXPECT_EQ(t.calls, 0U);
}

struct nested {
  pool* inner;
  std::atomic<int> refused{0};
};

TEST(pool, a_task_cannot_start_a_run) {
  pool p(2);
  nested n{&p};
  ASSERT_EQ(p.run(
                2,
                [](void* arg, uint32_t, uint32_t) {
                  auto& self = *static_cast<nested*>(arg);
                  tally t;
                  if (self.inner->run(1, count, &t) == BITNET_INVALID_ARGUMENT) ++self.refused;
                },
                &n),
            BITNET_OK);
  EXPECT_EQ(n.refused, 2);
}

struct meeting {
  std::atomic<uint32_t> arrived{0};
};

TEST(pool, shares_really_run_at_the_same_time) {
  pool p(4);
  meeting m;
  ASSERT_EQ(p.run(
                4,
                [](void* arg, uint32_t, uint32_t n) {
                  auto& self = *static_cast<meeting*>(arg);
                  self.arrived.fetch_add(1);
                  while (self.arrived.load() < n) std::this_thread::yield();
                },
                &m),
            BITNET_OK);
  EXPECT_EQ(m.arrived, 4U);
}

TEST(pool, many_callers_take_turns) {
  pool p(3);
  std::atomic<uint32_t> total{0};
  {
    std::vector<std::jthread> callers;
    for (int c = 0; c < 4; ++c)
      callers.emplace_back([&] {
        for (int i = 0; i < 200; ++i) {
          tally t;
          if (p.run(1 + static_cast<uint32_t>(i) % 3, count, &t) == BITNET_OK) total += t.calls;
        }
      });
  }
  uint32_t expected = 0;
  for (uint32_t i = 0; i < 200; ++i) expected += 4 * (1 + i % 3);
  EXPECT_EQ(total, expected);
}

TEST(available, is_at_least_one_and_within_the_affinity) {
  cpu_set_t set;
  CPU_ZERO(&set);
  ASSERT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  EXPECT_GE(available(), 1U);
  EXPECT_LE(available(), static_cast<uint32_t>(CPU_COUNT(&set)));
}

}  // namespace
}  // namespace bitnet::threads

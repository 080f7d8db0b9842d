#include "threads/pool.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace bitnet::threads {
namespace {

constexpr uint32_t most_cpus_of_a_test = 4096;  // no machine that runs this has CPU 4096

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

TEST(pool, rejects_what_it_cannot_run) {
  pool p(2);
  tally t;
  EXPECT_EQ(p.run(0, count, &t), BITNET_INVALID_ARGUMENT);
  EXPECT_EQ(p.run(3, count, &t), BITNET_INVALID_ARGUMENT);
  EXPECT_EQ(p.run(1, nullptr, &t), BITNET_INVALID_ARGUMENT);
  EXPECT_EQ(t.calls, 0U);
}

struct nested {
  pool* inner;
  std::atomic<int> rejected{0};
};

TEST(pool, a_task_cannot_start_a_run) {
  pool p(2);
  nested n{&p};
  ASSERT_EQ(p.run(
                2,
                [](void* arg, uint32_t, uint32_t) {
                  auto& self = *static_cast<nested*>(arg);
                  tally t;
                  if (self.inner->run(1, count, &t) == BITNET_INVALID_ARGUMENT) ++self.rejected;
                },
                &n),
            BITNET_OK);
  EXPECT_EQ(n.rejected, 2);
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

TEST(pool, runs_whether_its_workers_spin_or_sleep) {
  for (const uint32_t poll : {0U, 1U, 100U}) {
    pool p(3, {poll, {}});
    for (int i = 0; i < 200; ++i) {
      if (i % 50 == 49) std::this_thread::sleep_for(std::chrono::milliseconds(2));  // all asleep
      tally t;
      ASSERT_EQ(p.run(3, count, &t), BITNET_OK);
      ASSERT_EQ(t.seen, 7U) << "poll " << poll;
    }
  }
}

TEST(pool, computes_on_the_cpus_that_it_was_given) {
  const cpu_list all = allowed_cpus();
  const cpu_list last = {all.back()};
  std::jthread([&] {  // a thread of its own: it stays where it was moved to
    for (const cpu_list& cpus : {last, all}) {
      pool p(2, {default_poll, cpus});
      std::vector<cpu_list> seen(2);
      ASSERT_EQ(p.run(
                    2,
                    [](void* arg, uint32_t worker, uint32_t) {
                      (*static_cast<std::vector<cpu_list>*>(arg))[worker] = allowed_cpus();
                    },
                    &seen),
                BITNET_OK);
      EXPECT_EQ(seen[0], cpus) << "the caller";
      EXPECT_EQ(seen[1], cpus);
    }
  })
      .join();
  EXPECT_EQ(allowed_cpus(), all) << "other threads stay where they are";
}

// The places that a run of each width saw, with the caller's own afterwards.
std::vector<cpu_list> seen_by(pool& p) {
  std::vector<cpu_list> seen(p.width());
  EXPECT_EQ(p.run(
                p.width(),
                [](void* arg, uint32_t worker, uint32_t) {
                  (*static_cast<std::vector<cpu_list>*>(arg))[worker] = allowed_cpus();
                },
                &seen),
            BITNET_OK);
  return seen;
}

TEST(pool, keeps_each_worker_to_its_place_and_the_caller_during_the_run) {
  const cpu_list all = allowed_cpus();
  const std::vector<cpu_list> places = {{all.back()}, {all.front()}, {all.back()}};
  pool p(3, {default_poll, {}, places});
  EXPECT_EQ(p.places(), places) << "before the first run";
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(seen_by(p), places);
    EXPECT_EQ(allowed_cpus(), all) << "what the caller starts next inherits no place";
  }
  EXPECT_EQ(p.places(), places);
  pool one(1, {default_poll, {}, {{all.back()}}});
  EXPECT_EQ(seen_by(one), (std::vector<cpu_list>{{all.back()}})) << "the caller alone";
  EXPECT_EQ(allowed_cpus(), all);
}

TEST(pool, goes_on_without_a_place_that_the_system_rejects_and_says_so) {
  const cpu_list all = allowed_cpus(), nowhere = {most_cpus_of_a_test};
  pool p(2, {default_poll, {}, {nowhere, nowhere}});
  const std::vector<cpu_list> want = {all, all};
  EXPECT_EQ(seen_by(p), want);
  EXPECT_EQ(p.places(), want);
}

TEST(pool, places_are_any_cpus_where_none_were_given) {
  pool p(2);
  EXPECT_EQ(p.places(), (std::vector<cpu_list>{allowed_cpus(), allowed_cpus()}));
}

TEST(pool_of_thread, is_of_one_thread_for_a_time) {
  EXPECT_EQ(pool_of_thread::get(), nullptr);
  {
    pool own(1);
    const pool_of_thread here(own);
    EXPECT_EQ(pool_of_thread::get(), &own);
    std::jthread([] { EXPECT_EQ(pool_of_thread::get(), nullptr); });
  }
  EXPECT_EQ(pool_of_thread::get(), nullptr);
}

TEST(cpu_mask, is_read_from_its_lowest_bit) {
  const cpu_list all = allowed_cpus();
  std::string mask;
  for (uint32_t at = 0; at <= all.back() / 4; ++at) {
    uint32_t value = 0;
    for (const uint32_t cpu : all)
      if (cpu / 4 == at) value |= 1U << cpu % 4;
    mask.insert(0, 1, "0123456789ABCDEF"[value]);
  }
  for (const std::string& text : {mask, "0x" + mask, "000" + mask}) {
    auto read = read_cpu_mask(text);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(*read, all) << text;
  }
}

TEST(cpu_mask, rejects_what_names_no_usable_cpu) {
  for (const char* bad : {"", "0", "0x", "x", "1g", "-1", " 1"}) {
    const auto read = read_cpu_mask(bad);
    ASSERT_FALSE(read) << bad;
    EXPECT_EQ(read.error().status, BITNET_INVALID_ARGUMENT);
  }
  const auto far = read_cpu_mask("1" + std::string(most_cpus_of_a_test / 4, '0'));
  ASSERT_FALSE(far);
  EXPECT_NE(far.error().message.find("CPU " + std::to_string(most_cpus_of_a_test)),
            std::string::npos)
      << far.error().message;
  EXPECT_NE(far.error().message.find("may use " + ranges(allowed_cpus())), std::string::npos);
  EXPECT_FALSE(read_cpu_mask(std::string(100000, 'f')));
}

TEST(cpu_mask, ranges_name_the_cpus) {
  EXPECT_EQ(ranges({}), "");
  EXPECT_EQ(ranges({3}), "3");
  EXPECT_EQ(ranges({0, 1, 2, 5, 7, 8}), "0-2,5,7-8");
}

TEST(available, is_at_least_one_and_within_the_affinity) {
  cpu_set_t set;
  CPU_ZERO(&set);
  ASSERT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  EXPECT_GE(available(), 1U);
  EXPECT_LE(available(), static_cast<uint32_t>(CPU_COUNT(&set)));
  EXPECT_EQ(available({allowed_cpus().front()}), 1U);
}

}  // namespace
}  // namespace bitnet::threads

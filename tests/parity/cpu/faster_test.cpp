// Which of two kernels is taken, by their timings.

#include "ops/faster.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace bitnet::cpu {
namespace {

constexpr uint64_t later = 1001;  // pieces, by which both were timed; none that tries the other

TEST(faster, takes_both_in_turn_first) {
  const faster both;
  for (uint64_t piece = 0; piece < 4; ++piece) EXPECT_EQ(both.is_other(piece), piece % 2 == 1);
}

TEST(faster, goes_by_the_least_time_of_each) {
  faster both;
  for (const float took : {5.0f, 2.0f, 9.0f}) both.note(false, took);
  for (const float took : {7.0f, 1.5f, 30.0f}) both.note(true, took);
  EXPECT_TRUE(both.is_other(later));
  both.note(false, 1.0f);
  EXPECT_FALSE(both.is_other(later));
}

TEST(faster, stays_with_the_usual_one_where_they_are_alike) {
  faster both;
  both.note(false, 1.0f);
  both.note(true, 0.98f);
  EXPECT_FALSE(both.is_other(later));
  both.note(true, 0.96f);
  EXPECT_TRUE(both.is_other(later));
}

TEST(faster, forgets_luck) {
  faster both;
  both.note(true, 2.0f);
  both.note(false, 1.0f);  // luck: it takes 3 else
  EXPECT_FALSE(both.is_other(later));
  for (int piece = 0; piece < 60; ++piece) both.note(false, 3.0f);
  EXPECT_TRUE(both.is_other(later));
}

TEST(faster, tries_the_slower_one_now_and_then) {
  for (const bool other : {false, true}) {
    faster both;
    both.note(other, 1.0f);
    both.note(!other, 2.0f);
    int tried = 0;
    for (uint64_t piece = later; piece < later + 620; ++piece)
      tried += both.is_other(piece) != other ? 1 : 0;
    EXPECT_EQ(tried, 20);
  }
}

TEST(faster, runs_one_of_them_for_each_piece_and_learns) {
  faster both;
  std::atomic<int> usual{0}, other{0};
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i)
        both.run(
            1,
            [&] {
              ++usual;
              std::this_thread::sleep_for(std::chrono::milliseconds(1));  // it is the slower one
            },
            [&] { ++other; });
    });
  threads.clear();
  EXPECT_EQ(usual + other, 400);
  // Two at first, then one in 31 beside those that begin before the first is timed.
  EXPECT_LE(usual, 2 + 400 / 31 + 4);
}

}  // namespace
}  // namespace bitnet::cpu

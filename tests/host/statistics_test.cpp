#include "judge/statistics.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace bitnet::host {
namespace {

std::vector<double> down_from(int n) {
  std::vector<double> out(static_cast<std::size_t>(n));
  std::iota(out.rbegin(), out.rend(), 1.0);
  return out;
}

TEST(statistics, a_percentile_is_the_value_at_the_nearest_rank) {
  struct row {
    std::vector<double> x;
    double percent, want;
    const char* why;
  };
  for (const auto& [x, percent, want, why] : std::initializer_list<row>{
           {{7}, 1, 7, "one value is every percentile"},
           {{7}, 99, 7, "at both ends"},
           {{15, 20, 35, 40, 50}, 30, 20, "rank 1.5 is rounded up"},
           {{15, 20, 35, 40, 50}, 40, 20, "rank 2 is itself: half or less do not count twice"},
           {{15, 20, 35, 40, 50}, 50, 35, "the middle"},
           {{15, 20, 35, 40, 50}, 100, 50, "the largest"},
           {{50, 15, 40, 20, 35}, 40, 20, "in any order"},
           {{1, 2}, 50, 1, "of an even number the lower one, not the mean"},
           {{3, 3, 3, 9}, 75, 3, "equal values have ranks of their own"},
           {down_from(100), 95, 95, "95 of 100 are 95 or less"},
           {down_from(100), 99, 99, "no rounding error takes it to the next"},
           {down_from(101), 99, 100, "rank 99.99"},
           {down_from(20), 99, 20, "few values: the largest"},
           {down_from(1000), 95, 950, "many values"}}) {
    EXPECT_EQ(percentile(x, percent), want) << why;
  }
}

TEST(statistics, equal_those_computed_by_hand) {
  EXPECT_EQ(mean({1, 2, 6}), 3);
  EXPECT_EQ(median({6, 1, 2}), 2);
  EXPECT_EQ(median({6, 1, 2, 4}), 3);
  EXPECT_EQ(deviation({5}), 0);
  EXPECT_DOUBLE_EQ(deviation({2, 4, 4, 4, 5, 5, 7, 9}), 2.1380899352993952);
}

}  // namespace
}  // namespace bitnet::host

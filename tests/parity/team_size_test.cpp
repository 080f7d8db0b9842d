// How many workers share a step of one token: all of them unless one less is faster, whatever
// others on the machine do meanwhile.

#include "bitnet/sdk/interpreter/team_size.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <vector>

namespace bitnet::parity {
namespace {

struct step_cost {
  uint64_t ns, sleeps;
};

// The sizes of so many steps.
std::vector<uint32_t> sizes_of(sdk::team_size& team, uint32_t most, uint64_t steps,
                               const std::function<step_cost(uint32_t)>& cost) {
  std::vector<uint32_t> out;
  for (uint64_t i = 0; i < steps; ++i) {
    out.push_back(team.next(most));
    const step_cost c = cost(out.back());
    team.took(c.ns, c.sleeps);
  }
  return out;
}

uint64_t count(const std::vector<uint32_t>& sizes, uint32_t size) {
  return static_cast<uint64_t>(std::ranges::count(sizes, size));
}

TEST(team_size, is_all_where_no_worker_waits_long) {
  sdk::team_size team;
  // One worker would be faster, but nothing says that it is worth a trial.
  const auto sizes = sizes_of(team, 4, 1000, [](uint32_t n) { return step_cost{n * 1000, 3}; });
  EXPECT_EQ(count(sizes, 4), 1000u);
}

TEST(team_size, is_one_less_where_that_is_faster) {
  sdk::team_size team;
  const auto busy = [](uint32_t n) { return n == 2 ? step_cost{41, 300} : step_cost{24, 0}; };
  const auto sizes = sizes_of(team, 2, 1000, busy);
  EXPECT_EQ(count({sizes.begin(), sizes.begin() + 4}, 2), 4u);
  EXPECT_EQ(sizes[4], 1u);
  EXPECT_LE(count(sizes, 2), 4u + 1000 / 50) << "now and then a step is tried with both";
  EXPECT_GE(count(sizes, 2), 4u + 1000 / 60);
}

TEST(team_size, comes_back_without_other_load) {
  sdk::team_size team;
  bool disturbed = true;
  const auto cost = [&](uint32_t n) {
    return n == 2 ? disturbed ? step_cost{41, 300} : step_cost{16, 2} : step_cost{24, 0};
  };
  EXPECT_EQ(sizes_of(team, 2, 100, cost).back(), 1u);
  disturbed = false;
  const auto sizes = sizes_of(team, 2, 100, cost);
  EXPECT_EQ(sizes.back(), 2u);
  EXPECT_LE(count(sizes, 1), 56u);
  EXPECT_EQ(count(sizes_of(team, 2, 200, cost), 2), 200u);
}

TEST(team_size, stays_where_one_less_is_slower) {
  sdk::team_size team;
  // Workers that sleep at each meeting, as with poll 0, and are needed all the same.
  const auto sizes =
      sizes_of(team, 2, 1000, [](uint32_t n) { return step_cost{n == 2 ? 20u : 30u, 300}; });
  EXPECT_LE(count(sizes, 1), 1000u / 40) << "a step of each trial";
  // The same where it is nearly as fast.
  sdk::team_size other;
  EXPECT_GE(count(sizes_of(other, 2, 1000,
                           [](uint32_t n) { return step_cost{n == 2 ? 100u : 95u, 300}; }),
                  2),
            900u);
}

TEST(team_size, goes_down_one_by_one) {
  sdk::team_size team;
  // Two of eight cores are taken by other programs.
  const auto cost = [](uint32_t n) {
    return n > 6 ? step_cost{n == 8 ? 60u : 50u, 300} : step_cost{120 / n, 0};
  };
  EXPECT_EQ(sizes_of(team, 8, 300, cost).back(), 6u);
}

TEST(team_size, begins_anew_with_other_workers) {
  sdk::team_size team;
  sizes_of(team, 2, 100, [](uint32_t n) { return step_cost{n == 2 ? 41u : 24u, 300}; });
  EXPECT_EQ(team.next(2), 1u);
  EXPECT_EQ(team.next(3), 3u);
  EXPECT_EQ(team.next(1), 1u);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(team.next(1), 1u) << "never less than one";
    team.took(50, 300);
  }
}

}  // namespace
}  // namespace bitnet::parity

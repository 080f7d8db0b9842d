#include "schedule/fairness.hpp"

#include <gtest/gtest.h>

namespace bitnet::schedule {
namespace {

using std::chrono::seconds;
const fairness::time_point start{
    std::chrono::hours(24 * 365 * 30)};  // a machine that is on for long

TEST(fairness, a_token_counts_half_as_much_after_a_half_life) {
  fairness f(seconds(60));
  EXPECT_EQ(f.lately(1, start), 0);
  f.serve(1, 100, start);
  EXPECT_NEAR(f.lately(1, start), 100, 0.01);
  EXPECT_NEAR(f.lately(1, start + seconds(60)), 50, 0.01);
  f.serve(1, 100, start + seconds(60));
  EXPECT_NEAR(f.lately(1, start + seconds(60)), 150, 0.01);
  EXPECT_NEAR(f.lately(1, start + seconds(180)), 37.5, 0.01);
}

TEST(fairness, the_order_is_that_of_what_was_served_lately) {
  fairness f(seconds(60));
  f.serve(1, 100, start);
  f.serve(2, 60, start + seconds(60));
  EXPECT_LT(f.order_of(1), f.order_of(2)) << "100 a minute ago are 50 now";
  EXPECT_LT(f.order_of(3), f.order_of(1)) << "nothing";
  f.serve(3, 0, start);
  EXPECT_EQ(f.n_clients(), 2U) << "no token is no service";
}

TEST(fairness, clients_that_are_gone_are_forgotten) {
  fairness f(seconds(60));
  for (uint64_t c = 0; c < 100000; ++c) {
    f.serve(c, 100, start + seconds(10) * c);
    ASSERT_LE(f.n_clients(), 200U);
  }
}

}  // namespace
}  // namespace bitnet::schedule

// Differences of two rows of logits, held against values from the definition of KL divergence in
// long double and against values by hand.

#include "shadow/comparing.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace bitnet::shadow {
namespace {

using floats = std::vector<float>;

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

constexpr double no_kl = std::numeric_limits<double>::quiet_NaN();
constexpr double endless = std::numeric_limits<double>::infinity();

// Without any care for large logits.
long double naive_kl(const floats& live, const floats& shadow) {
  long double sum_live = 0, sum_shadow = 0, out = 0;
  for (const float x : live) sum_live += std::exp(static_cast<long double>(x));
  for (const float x : shadow) sum_shadow += std::exp(static_cast<long double>(x));
  for (std::size_t i = 0; i < live.size(); ++i) {
    const long double p = std::exp(static_cast<long double>(live[i])) / sum_live;
    const long double q = std::exp(static_cast<long double>(shadow[i])) / sum_shadow;
    if (p > 0) out += p * std::log(p / q);
  }
  return out;
}

TEST(comparing, differences_equal_those_computed_by_hand) {
  // p = (1/2, 1/2), q = (3/4, 1/4): 1/2 ln(2/3) + 1/2 ln 2 = 1/2 ln(4/3).
  const floats live = {0, 0}, shadow = {std::log(3.0F), 0};
  const row_difference d = compare(live, shadow);
  EXPECT_NEAR(d.kl, 0.5 * std::log(4.0 / 3.0), 1e-7);
  EXPECT_NEAR(d.max_abs, std::log(3.0), 1e-6);
  EXPECT_EQ(d.relative, 1) << "no live logit but 0";
  EXPECT_EQ(d.live_top, 0) << "of equal logits the lowest id";
  EXPECT_EQ(d.shadow_top, 0);
  EXPECT_TRUE(d.same_top());
  EXPECT_FALSE(d.same_bytes);
}

TEST(comparing, a_distance_is_a_part_of_the_largest_live_logit) {
  EXPECT_EQ(compare(floats{-8, 1, 4}, floats{-8, 1, 6}).relative, 0.25);
  EXPECT_EQ(compare(floats{-inf, 4}, floats{0, 5}).relative, 0.25);
  EXPECT_EQ(compare(floats{0, 0}, floats{0, -0.0F}).relative, 0);
}

TEST(comparing, equals_the_definition_in_long_double) {
  std::mt19937 random(7);
  std::normal_distribution<float> logit(0, 4);
  for (int round = 0; round < 20; ++round) {
    floats live(1000), shadow(1000);
    for (std::size_t i = 0; i < live.size(); ++i) {
      live[i] = logit(random);
      shadow[i] = live[i] + logit(random) / 16;
    }
    const auto expected = static_cast<double>(naive_kl(live, shadow));
    EXPECT_NEAR(compare(live, shadow).kl, expected, 1e-12 + 1e-10 * expected) << round;
    EXPECT_GT(expected, 0);
  }
}

TEST(comparing, large_logits_do_not_overflow) {
  // The same distributions as (0, 1) and (1, 0): p (1 - e)/(1 + e), by symmetry (e - 1)/(e + 1).
  const floats live = {30000, 30001}, shadow = {-29999, -30000};
  const double e = std::exp(1.0);
  EXPECT_NEAR(compare(live, shadow).kl, (e - 1) / (e + 1), 1e-12);
  EXPECT_FALSE(compare(live, shadow).same_top());
}

TEST(comparing, equal_rows_do_not_differ) {
  const floats row = {1, -2, 3.5F, -inf};
  const row_difference d = compare(row, row);
  EXPECT_TRUE(d.same_bytes);
  EXPECT_TRUE(d.same_top());
  EXPECT_EQ(d.kl, 0);
  EXPECT_EQ(d.max_abs, 0);
  EXPECT_EQ(d.live_top, 2);
}

TEST(comparing, zeros_of_both_signs_differ_in_bytes_alone) {
  const row_difference d = compare(floats{0.0F, 1}, floats{-0.0F, 1});
  EXPECT_FALSE(d.same_bytes);
  EXPECT_EQ(d.kl, 0);
  EXPECT_EQ(d.max_abs, 0);
}

TEST(comparing, infinities_and_nan_leave_kl_infinite_or_undefined) {
  struct {
    const char* why;
    floats live, shadow;
    double kl;  // NaN: not defined
    double max_abs;
    bool same_top;
  } const rows[] = {
      {"a token that neither lets come", {1, 1, -inf}, {1, 1, -inf}, 0, 0, true},
      {"one that only the live row excludes", {0, 0, -inf}, {0, 0, 0}, std::log(1.5), 0, true},
      {"one that only the shadow excludes", {0, 0, 0}, {0, 0, -inf}, endless, 0, true},
      {"a NaN", {0, 2, 1}, {0, nan, 3}, no_kl, 2, false},
      {"a NaN in the live row", {nan, 2, 1}, {0, 2, 1}, no_kl, 0, true},
      {"+infinity", {0, inf, 1}, {0, 4, 1}, no_kl, 0, true},
      {"no token may come", {-inf, -inf, -inf}, {0, 0, 0}, no_kl, 0, true},
      {"all are NaN", {nan, nan, nan}, {nan, nan, nan}, no_kl, 0, false},
  };
  for (const auto& [why, live, shadow, kl, max_abs, same_top] : rows) {
    const row_difference d = compare(live, shadow);
    if (std::isnan(kl))
      EXPECT_TRUE(std::isnan(d.kl)) << why << ": " << d.kl;
    else if (std::isinf(kl))
      EXPECT_EQ(d.kl, kl) << why;
    else
      EXPECT_NEAR(d.kl, kl, 1e-12) << why;
    EXPECT_EQ(d.max_abs, max_abs) << why;
    EXPECT_EQ(d.same_top(), same_top) << why;
  }
}

row_difference of(double kl, double max_abs, int32_t live_top, int32_t shadow_top) {
  row_difference d;
  d.kl = kl;
  d.max_abs = max_abs;
  d.relative = max_abs / 16;
  d.live_top = live_top;
  d.shadow_top = shadow_top;
  d.same_bytes = kl == 0 && max_abs == 0;
  return d;
}

TEST(totals, sums_and_the_worst_row) {
  totals t;
  EXPECT_EQ(t.mean_kl(), 0);
  const std::vector<int32_t> tokens = {5, 6, 7};
  const auto add = [&](const row_difference& d, uint64_t position) {
    t.add(d, {1, {9, 2}, position}, std::span(tokens).first(position + 1));
  };
  add(of(0, 0, 1, 1), 0);
  EXPECT_EQ(t.worst.at.position, 0U) << "one row is the worst of one";
  add(of(0.5, 3, 1, 2), 1);
  add(of(0.25, 8, 4, 4), 2);
  EXPECT_EQ(t.rows, 3U);
  EXPECT_EQ(t.same_bytes, 1U);
  EXPECT_EQ(t.same_top, 2U);
  EXPECT_EQ(t.without_kl, 0U);
  EXPECT_EQ(t.mean_kl(), 0.25);
  EXPECT_EQ(t.max_kl, 0.5);
  EXPECT_EQ(t.max_abs, 8);
  EXPECT_EQ(t.max_relative, 0.5);
  EXPECT_EQ(t.worst.at.position, 1U);
  EXPECT_EQ(t.worst.at.of.request, 9U);
  EXPECT_EQ(t.worst.at.of.choice, 2U);
  EXPECT_EQ(t.worst.by.shadow_top, 2);
  EXPECT_EQ(t.worst.tokens, (std::vector<int32_t>{5, 6}));
}

TEST(totals, a_row_without_kl_is_in_no_mean_and_is_the_worst) {
  totals t;
  const std::vector<int32_t> tokens = {5};
  t.add(of(0.5, 1, 0, 0), {1, {}, 0}, tokens);
  t.add(of(endless, 1, 0, 1), {2, {}, 0}, tokens);
  t.add(of(no_kl, 0.5, 0, 1), {3, {}, 0}, tokens);
  t.add(of(0.75, 2, 0, 0), {4, {}, 0}, tokens);
  EXPECT_EQ(t.without_kl, 2U);
  EXPECT_EQ(t.mean_kl(), 0.625);
  EXPECT_EQ(t.max_kl, 0.75);
  EXPECT_EQ(t.worst.at.source, 2U);
}

}  // namespace
}  // namespace bitnet::shadow

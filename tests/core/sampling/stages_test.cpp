// Stages that look at probabilities, by hand; the judge in NumPy (tests/reference/sampling_test.py)
// compares each of them, and all together, on random rows.
#include "sampling/stages.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "sampling/logarithm.hpp"
#include "sampling/mirostat.hpp"
#include "sampling/sampler.hpp"

namespace bitnet::sampling {
namespace {

// Candidates of these probabilities, in the order of their ids.
std::vector<candidate> with(const std::vector<double>& probabilities) {
  std::vector<candidate> out;
  for (const double p : probabilities)
    out.push_back({static_cast<float>(std::log(p)), static_cast<int32_t>(out.size())});
  weigh(out, 1);
  return out;
}

std::vector<int32_t> ids_of(const std::vector<candidate>& all) {
  std::vector<int32_t> out;
  for (const candidate& c : all) out.push_back(c.id);
  return out;
}

using ids = std::vector<int32_t>;

TEST(stages, top_n_sigma_counts_deviations_from_the_highest) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> logits{0, 2, 0, 2};  // mean 1, deviation 1
  EXPECT_EQ(least_within_sigma(logits, 1), 1);
  EXPECT_EQ(least_within_sigma(logits, 2), 0);
  const std::vector<float> some{0, 2, -infinity, 0, never, never + 5, 2};
  EXPECT_EQ(least_within_sigma(some, 1), 1) << "forbidden tokens do not count";
}

// Their entropy is 1.17 nats, and their information 0.69, 1.39, 1.61 and 3.00.
TEST(stages, typical_keeps_those_nearest_to_the_entropy_in_their_order) {
  const auto kept = [](float p) {
    auto all = with({0.5, 0.25, 0.2, 0.05});
    keep_typical(all, p);
    return ids_of(all);
  };
  EXPECT_EQ(kept(0), ids{1}) << "one stays";
  EXPECT_EQ(kept(0.24F), ids{1});
  EXPECT_EQ(kept(0.3F), (ids{1, 2}));
  EXPECT_EQ(kept(0.6F), (ids{0, 1, 2})) << "the likeliest is not the most typical";
  auto one = with({1});
  keep_typical(one, 0.5F);
  EXPECT_EQ(ids_of(one), ids{0});
}

TEST(stages, xtc_leaves_the_least_of_the_likely_and_all_others) {
  const auto kept = [](float threshold, std::vector<double> of) {
    auto all = with(of);
    exclude_top_choices(all, threshold);
    return ids_of(all);
  };
  EXPECT_EQ(kept(0.15F, {0.5, 0.25, 0.2, 0.05}), (ids{2, 3}));
  EXPECT_EQ(kept(0.3F, {0.5, 0.25, 0.2, 0.05}), (ids{0, 1, 2, 3})) << "one alone stays";
  EXPECT_EQ(kept(0.9F, {0.5, 0.5}), (ids{0, 1})) << "none is likely";
  EXPECT_EQ(kept(0.2F, {0.25, 0.25, 0.25, 0.25}), ids{3}) << "of equals the last";
  EXPECT_EQ(kept(0.1F, {1}), ids{0});
}

TEST(stages, dynamic_temperature_goes_with_the_entropy) {
  const dynamic_range of{.temperature = 1, .range = 0.5, .exponent = 1};
  EXPECT_NEAR(temperature_by_entropy(with({0.5, 0.5}), of), 1.5, 1e-7);
  EXPECT_NEAR(temperature_by_entropy(with({1, 1e-30}), of), 0.5, 1e-7);
  EXPECT_EQ(temperature_by_entropy(with({1}), of), 1);
  const auto some = with({0.7, 0.3});
  const double share = -(0.7 * std::log(0.7) + 0.3 * std::log(0.3)) / std::log(2);
  EXPECT_NEAR(temperature_by_entropy(some, of), 0.5 + share, 1e-6);
  EXPECT_NEAR(temperature_by_entropy(some, {1, 2, 3}), 3 * share * share * share, 1e-6)
      << "not below 0";
}

// XTC draws one number more for each token, and none where it is off.
TEST(stages, xtc_comes_as_often_as_its_probability_says) {
  parameters p;
  p.temperature = 1;
  p.top_k = 0;
  p.top_p = 1;
  p.min_p = 0;
  p.xtc_probability = 0.3F;
  p.xtc_threshold = 0.2F;
  auto s = *sampler::make(p, 2);
  constexpr int draws = 4000;
  int excluded = 0;
  for (int i = 0; i < draws; ++i) {
    ASSERT_TRUE(s.sample(std::vector<float>{1, 0}));
    excluded += s.drawn_from().size() == 1 ? 1 : 0;
  }
  EXPECT_NEAR(excluded, 0.3 * draws, 5 * std::sqrt(0.3 * 0.7 * draws));
}

// The surprise of a long text comes to tau, where the tokens can have it. mu begins at 2 tau and
// changes by -eta (s - tau) with each token, so the mean of s is off by (2 tau - mu) / (eta draws).
// mu stays within 20 of its beginning: below 0 only the likeliest token is kept, whose s is 0, and
// from some value on all are, whose s is 7.3 on average.
TEST(stages, mirostat_keeps_the_surprise) {
  std::vector<float> logits;
  for (int i = 1; i <= 2000; ++i) logits.push_back(static_cast<float>(-1.1 * std::log(i)));
  for (const int32_t version : {1, 2})
    for (const float tau : {2.0F, 4.0F}) {
      parameters p;
      p.temperature = 1;
      p.mirostat = version;
      p.mirostat_tau = tau;
      auto s = *sampler::make(p, 2000);
      double surprise = 0;
      constexpr int draws = 2000;
      for (int i = 0; i < draws; ++i) {
        const auto token = s.sample(logits);
        ASSERT_TRUE(token);
        for (const auto& [id, probability] : s.drawn_from())
          if (id == *token) surprise -= std::log2(probability) / draws;
      }
      EXPECT_NEAR(surprise, tau, 20 / (p.mirostat_eta * draws)) << version;
    }
}

// Candidates of equal probability have no exponent of Zipf's law.
TEST(stages, mirostat_of_equal_or_single_candidates_keeps_one_at_least) {
  for (const int32_t version : {1, 2})
    for (const float tau : {0.0F, 0.1F, 50.0F})
      for (const std::size_t n : {1U, 2U, 300U}) {
        parameters p;
        p.temperature = 1;
        p.mirostat = version;
        p.mirostat_tau = tau;
        auto s = *sampler::make(p, static_cast<uint32_t>(n));
        for (int i = 0; i < 20; ++i) ASSERT_TRUE(s.sample(std::vector<float>(n, 1)));
        const auto kept = s.drawn_from().size();
        EXPECT_GE(kept, 1U);
        if (tau == 50 || n == 1) {
          EXPECT_EQ(kept, n);
        } else if (version == 2) {  // mu stays below 1, the least surprise of a token
          EXPECT_EQ(kept, 1U);
        }
      }
}

TEST(logarithm_function, is_as_near_as_a_double_can_be) {
  EXPECT_EQ(logarithm(1), 0);
  for (int i = -1000; i < 1000; ++i) {
    const double x = std::exp(0.7 * i) * (1 + 0.001 * i / 1000);
    if (!std::isfinite(x) || x == 0) continue;
    const auto exact = static_cast<double>(std::log(static_cast<long double>(x)));
    ASSERT_NEAR(logarithm(x), exact, 4e-16 * (1 + std::abs(exact))) << x;
  }
  for (const double x : {1 - 1e-10, 1 + 1e-10, 0.70710678, 0.7071068, 1.4142135, 1.4142136})
    EXPECT_NEAR(logarithm(x) / static_cast<double>(std::log(static_cast<long double>(x))), 1,
                1e-15);
  EXPECT_EQ(power(0, 0), 1);
  EXPECT_EQ(power(0, 2), 0);
  EXPECT_EQ(power(1, 5), 1);
  EXPECT_NEAR(power(0.3, 2.5), std::pow(0.3, 2.5), 1e-16);
}

}  // namespace
}  // namespace bitnet::sampling

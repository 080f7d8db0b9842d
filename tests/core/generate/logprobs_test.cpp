// Log probabilities against the definition, computed in long double and by a sort of everything.
#include "generate/logprobs.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace bitnet::generate {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

// log(exp(l) / sum of exp) as it reads, with the largest subtracted.
std::vector<long double> slow_logprobs(const std::vector<float>& logits) {
  const long double most = *std::ranges::max_element(logits);
  long double sum = 0;
  for (const float l : logits) sum += std::exp(static_cast<long double>(l) - most);
  std::vector<long double> out;
  out.reserve(logits.size());
  for (const float l : logits) out.push_back(static_cast<long double>(l) - most - std::log(sum));
  return out;
}

// Each term is exact to 4e-16 (sampling/exponential.hpp), a sum of n terms in order to n / 2^53 of
// itself; both become absolute errors of its logarithm. The subtractions and the logarithm itself
// round three times, by the half of an ulp of what they give.
double tolerance(std::size_t n, long double value) {
  const double half_ulp = std::ldexp(1.0, -53);
  const auto size = static_cast<double>(std::abs(value)) + std::log(static_cast<double>(n)) + 1;
  return 4e-16 + static_cast<double>(n) * half_ulp + 3 * half_ulp * size;
}

void expect_near(double got, long double right, std::size_t n, const std::string& what) {
  if (std::isinf(right))
    EXPECT_EQ(got, -std::numeric_limits<double>::infinity()) << what;
  else
    EXPECT_LE(std::abs(got - right), tolerance(n, right)) << what;
}

void expect_right(const std::vector<float>& logits, int32_t chosen, uint32_t n,
                  const std::string& why) {
  token_logprobs got;
  got.largest.resize(7);  // of a call before
  find_logprobs(logits, chosen, n, got);
  const auto right = slow_logprobs(logits);
  std::vector<int32_t> order(logits.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int32_t>(i);
  std::ranges::sort(order, {}, [&](int32_t id) { return std::pair(-logits[id], id); });
  order.resize(std::min<std::size_t>(n, order.size()));
  expect_near(got.chosen, right[chosen], logits.size(), why);
  ASSERT_EQ(got.largest.size(), order.size()) << why;
  for (std::size_t i = 0; i < order.size(); ++i) {
    EXPECT_EQ(got.largest[i].id, order[i]) << why << ", place " << i;
    expect_near(got.largest[i].value, right[order[i]], logits.size(), why);
  }
}

TEST(logprobs, are_those_of_the_definition) {
  const struct {
    const char* why;
    std::vector<float> logits;
    int32_t chosen;
    uint32_t n;
  } rows[] = {
      {"only the chosen token", {1, 2, 3}, 0, 0},
      {"the largest is not the chosen one", {1, 3, 2}, 0, 1},
      {"one token is certain", {5}, 0, 1},
      {"more are asked for than the vocabulary has", {1, 2, 3}, 1, 20},
      {"just as many as the vocabulary has", {1, 2, 3}, 1, 3},
      {"ties go to the lower id", {2, 7, 7, 1, 7}, 4, 2},
      {"ties at the border, met late", {1, 2, 3, 3, 3, 9, 3}, 5, 3},
      {"all are the same", std::vector<float>(64, -3.5F), 63, 20},
      {"descending, where every later one is worse", {9, 8, 7, 6, 5}, 4, 2},
      {"tokens that never come", {-infinity, 1, -infinity, 0}, 1, 4},
      {"the chosen one never comes", {-infinity, 1}, 0, 2},
      {"the first is the only one that can", {0, -infinity, -infinity}, 0, 3},
      {"exp() of the logits themselves is infinite", {1e4F, 1e4F - 2, -1e4F}, 1, 3},
      {"exp() of the logits themselves is 0", {-1e4F, -1e4F - 2}, 0, 2},
      {"the ends of float",
       {std::numeric_limits<float>::max(), std::numeric_limits<float>::lowest()},
       1,
       2},
      {"zeros of both signs are the same", {-0.0F, 0.0F, -1}, 1, 2},
  };
  for (const auto& r : rows) expect_right(r.logits, r.chosen, r.n, r.why);
}

TEST(logprobs, equal_their_definition_on_random_rows) {
  std::mt19937 random(11);
  for (int round = 0; round < 200; ++round) {
    const std::size_t n = 1 + random() % 3000;
    std::normal_distribution<float> normal(0, static_cast<float>(1 + round % 30));
    std::vector<float> logits(n);
    for (float& l : logits) {
      l = normal(random);
      if (round % 3 == 1) l = std::round(l);  // many ties
      if (round % 5 == 2 && random() % 4 == 0) l = -infinity;
    }
    logits[random() % n] = 1;  // one can come
    expect_right(logits, static_cast<int32_t>(random() % n), random() % (most_logprobs + 1),
                 "round " + std::to_string(round));
  }
}

// 1 - p of 2e-20 is nothing beside 1, so a sum with the largest in it says 0.
TEST(logprobs, of_a_token_that_is_nearly_certain_keep_their_digits) {
  token_logprobs got;
  find_logprobs(std::vector<float>{45, 0}, 0, 1, got);
  EXPECT_NEAR(got.chosen / -std::exp(-45.0), 1, 1e-15);
  EXPECT_EQ(got.largest[0].value, got.chosen);
}

TEST(logprobs, are_right_for_a_large_vocabulary) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0, 4);
  std::vector<float> logits(128256);
  for (float& l : logits) l = normal(random);
  expect_right(logits, 77, most_logprobs, "128256 tokens");
}

}  // namespace
}  // namespace bitnet::generate

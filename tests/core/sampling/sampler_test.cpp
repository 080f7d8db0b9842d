// Each stage by hand, all of them against the stages written out slowly one after the other, the
// frequencies of many draws, and draws that must never change.
#include "sampling/sampler.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "sampling/exponential.hpp"
#include "sampling/random.hpp"

namespace bitnet::sampling {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
const float not_a_number = std::nanf("");

// Everything off: plain draws from the softmax.
parameters plain() {
  parameters p;
  p.temperature = 1;
  p.top_k = 0;
  p.top_p = 1;
  p.min_p = 0;
  return p;
}

sampler made(const parameters& p, size_t n_vocab) {
  auto s = sampler::make(p, static_cast<uint32_t>(n_vocab));
  if (!s) throw std::runtime_error(s.error().message);
  return *std::move(s);
}

// Bias, penalties, top-k, top-p, min-p and temperature in this order, each as its definition reads:
// token to probability. The other stages have tests of their own.
std::map<int32_t, double> slow_distribution(const parameters& p, std::vector<float> logits,
                                            const std::vector<int32_t>& accepted) {
  for (const auto& [token, bias] : p.logit_bias) logits[token] += bias;
  std::map<int32_t, int> seen;
  const size_t n =
      p.repeat_last_n < 0 ? accepted.size() : std::min<size_t>(p.repeat_last_n, accepted.size());
  for (size_t i = accepted.size() - n; i < accepted.size(); ++i) ++seen[accepted[i]];
  for (const auto& [token, count] : seen) {
    float& l = logits[token];
    l = l > 0 ? l / p.repeat_penalty : l * p.repeat_penalty;
    l -= static_cast<float>(count) * p.frequency_penalty + p.presence_penalty;
  }
  std::vector<std::pair<double, int32_t>> list;  // logit, id
  for (size_t i = 0; i < logits.size(); ++i) list.emplace_back(logits[i], i);
  std::ranges::sort(list, [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  if (p.top_k > 0) list.resize(std::min<size_t>(p.top_k, list.size()));
  const auto probabilities = [&](double temperature) {
    std::vector<double> out;
    double sum = 0;
    for (const auto& [l, id] : list)
      sum += out.emplace_back(std::exp((l - list[0].first) / temperature));
    for (double& x : out) x /= sum;
    return out;
  };
  if (p.top_p < 1) {
    const auto of = probabilities(1);
    double sum = 0;
    size_t keep = 0;
    do sum += of[keep++];
    while (keep < of.size() && sum < p.top_p);
    list.resize(keep);
  }
  if (p.min_p > 0) {
    const auto of = probabilities(1);
    size_t keep = 0;
    while (keep < of.size() && of[keep] >= p.min_p * of[0]) ++keep;
    list.resize(keep);
  }
  const auto of = probabilities(p.temperature);
  std::map<int32_t, double> out;
  for (size_t i = 0; i < list.size(); ++i) {
    if (of[i] > 0) out[list[i].second] = of[i];
  }
  return out;
}

// Draws 3000 times and compares with the probabilities: nothing that has none may come, and the
// chi-square statistic may not pass the 1 in 10^6 quantile (Wilson-Hilferty). The seed is fixed.
void expect_frequencies(const parameters& p, const std::vector<float>& logits,
                        const std::vector<int32_t>& accepted,
                        const std::map<int32_t, double>& expected, const std::string& why) {
  constexpr int draws = 3000;
  sampler s = made(p, logits.size());
  for (const int32_t token : accepted) s.accept(token);
  std::map<int32_t, int> seen;
  for (int i = 0; i < draws; ++i) {
    const auto id = s.sample(logits);
    ASSERT_TRUE(id) << why << ": " << id.error().message;
    ASSERT_TRUE(expected.contains(*id)) << why << ": token " << *id << " cannot come";
    ++seen[*id];
  }
  double statistic = 0;
  int cells = 0;
  double rare_expected = 0;
  double rare_seen = 0;
  const auto add = [&](double want, double got) {
    statistic += (got - want) * (got - want) / want;
    ++cells;
  };
  for (const auto& [id, probability] : expected) {
    const double want = probability * draws;
    if (want >= 5) {
      add(want, seen[id]);
    } else {  // too rare for a cell of its own
      rare_expected += want;
      rare_seen += seen[id];
    }
  }
  if (rare_expected > 0.01) add(rare_expected, rare_seen);
  if (cells < 2) return;
  const double freedom = cells - 1;
  const double step = 2 / (9 * freedom);
  const double limit = freedom * std::pow(1 - step + 4.753 * std::sqrt(step), 3);
  EXPECT_LT(statistic, limit) << why;
}

struct row {
  const char* why;
  std::function<void(parameters&)> change;
  std::vector<float> logits;
  std::vector<int32_t> accepted;
  std::map<int32_t, double> expected;
};

const float ln2 = std::log(2.0F);
const float ln4 = std::log(4.0F);

// Each stage by itself, as the hand computes it.
const row stages[] = {
    {"softmax", [](parameters&) {}, {ln2, 0, ln4 / 2}, {}, {{0, .4}, {1, .2}, {2, .4}}},
    {"a forbidden logit never comes",
     [](parameters&) {},
     {0, -infinity, 0},
     {},
     {{0, .5}, {2, .5}}},
    {"temperature 2 takes the root",
     [](parameters& p) { p.temperature = 2; },
     {ln4, 0},
     {},
     {{0, 2. / 3}, {1, 1. / 3}}},
    {"temperature 1/2 squares",
     [](parameters& p) { p.temperature = .5F; },
     {ln2, 0},
     {},
     {{0, .8}, {1, .2}}},
    {"bias is added",
     [](parameters& p) { p.logit_bias = {{1, ln2}}; },
     {0, 0},
     {},
     {{0, 1. / 3}, {1, 2. / 3}}},
    {"bias -inf forbids",
     [](parameters& p) { p.logit_bias = {{0, -infinity}}; },
     {9, 0, 0},
     {},
     {{1, .5}, {2, .5}}},
    {"top-k 2", [](parameters& p) { p.top_k = 2; }, {0, 1, 1, 0}, {}, {{1, .5}, {2, .5}}},
    {"top-k ties go to the lower id", [](parameters& p) { p.top_k = 1; }, {0, 0, 0}, {}, {{0, 1.}}},
    {"top-k past the vocabulary",
     [](parameters& p) { p.top_k = 99; },
     {0, 0},
     {},
     {{0, .5}, {1, .5}}},
    {"top-p stops at the token that reaches it",
     [](parameters& p) { p.top_p = .7F; },
     {ln4, ln2, 0, 0},
     {},
     {{0, 2. / 3}, {1, 1. / 3}}},
    {"top-p 0 keeps one", [](parameters& p) { p.top_p = 0; }, {0, 1}, {}, {{1, 1.}}},
    {"top-p sees what top-k left, not all",
     [](parameters& p) { p.top_k = 2, p.top_p = .45F; },
     {0, 0, 0, 0},
     {},
     {{0, 1.}}},
    {"min-p is relative to the best",
     [](parameters& p) { p.min_p = .4F; },
     {ln4, ln2, 0},
     {},
     {{0, 2. / 3}, {1, 1. / 3}}},
    {"top-p and min-p work before temperature",
     [](parameters& p) { p.min_p = .4F, p.temperature = .5F; },
     {ln4, ln2, 0},
     {},
     {{0, .8}, {1, .2}}},
    {"repeat divides a positive logit",
     [](parameters& p) { p.repeat_penalty = 2; },
     {ln4, 0},
     {0},
     {{0, 2. / 3}, {1, 1. / 3}}},
    {"repeat multiplies a negative logit",
     [](parameters& p) { p.repeat_penalty = 2; },
     {-ln2, 0},
     {0},
     {{0, .2}, {1, .8}}},
    {"repeat counts a token once",
     [](parameters& p) { p.repeat_penalty = 2; },
     {ln4, 0},
     {0, 0, 0},
     {{0, 2. / 3}, {1, 1. / 3}}},
    {"presence is subtracted once",
     [](parameters& p) { p.presence_penalty = ln2; },
     {0, 0},
     {0, 0},
     {{0, 1. / 3}, {1, 2. / 3}}},
    {"frequency is subtracted per time",
     [](parameters& p) { p.frequency_penalty = ln2; },
     {0, 0},
     {0, 0},
     {{0, .2}, {1, .8}}},
    {"what left the window is forgotten",
     [](parameters& p) { p.presence_penalty = 50, p.repeat_last_n = 2; },
     {0, 0, 0},
     {0, 1, 2},
     {{0, 1.}}},
    {"window 0 is off",
     [](parameters& p) { p.presence_penalty = 50, p.repeat_last_n = 0; },
     {0, 0},
     {0},
     {{0, .5}, {1, .5}}},
    {"window -1 is everything",
     [](parameters& p) { p.presence_penalty = 50, p.repeat_last_n = -1; },
     {0, 0},
     std::vector<int32_t>(200, 0),
     {{1, 1.}}},
    {"tokens outside the vocabulary are no matter",
     [](parameters& p) { p.presence_penalty = 50; },
     {0, 0},
     {-1, 2, 1 << 30},
     {{0, .5}, {1, .5}}},
};

TEST(distribution, of_each_stage_is_what_the_hand_computes) {
  for (const row& r : stages) {
    parameters p = plain();
    r.change(p);
    std::map<int32_t, double> slow = slow_distribution(p, r.logits, [&] {
      auto inside = r.accepted;
      std::erase_if(inside, [&](int32_t id) { return id < 0 || id >= std::ssize(r.logits); });
      return inside;
    }());
    std::erase_if(slow, [](const auto& entry) { return entry.second < 1e-20; });
    ASSERT_EQ(slow.size(), r.expected.size()) << r.why;
    for (const auto& [id, probability] : r.expected)
      EXPECT_NEAR(slow[id], probability, 1e-6) << r.why;
    expect_frequencies(p, r.logits, r.accepted, r.expected, r.why);
  }
}

TEST(distribution, of_all_stages_together_equals_the_slow_definition) {
  std::mt19937 random(1);
  const auto unit = [&] { return static_cast<float>(random() % 1000) / 1000; };
  for (int i = 0; i < 60; ++i) {
    parameters p;
    p.seed = random();
    p.temperature = .1F + 2 * unit();
    p.top_k = static_cast<int32_t>(random() % 2 * (1 + random() % 40));
    p.top_p = random() % 2 == 0 ? 1 : unit();
    p.min_p = random() % 2 == 0 ? 0 : unit() / 4;
    p.repeat_penalty = random() % 2 == 0 ? 1 : .5F + unit();
    p.presence_penalty = random() % 2 == 0 ? 0 : unit();
    p.frequency_penalty = random() % 2 == 0 ? 0 : unit();
    p.repeat_last_n = static_cast<int32_t>(random() % 20) - 1;
    if (random() % 2 == 0) p.logit_bias = {{0, 3 * unit()}, {7, -infinity}, {0, -1}};
    std::vector<float> logits;
    for (size_t n = 8 + random() % 60; n > 0; --n) logits.push_back(8 * unit() - 4);
    logits[5] = logits[3];  // a tie
    std::vector<int32_t> accepted;
    for (size_t n = random() % 30; n > 0; --n) {
      accepted.push_back(static_cast<int32_t>(random() % logits.size()));
    }
    expect_frequencies(p, logits, accepted, slow_distribution(p, logits, accepted),
                       "case " + std::to_string(i));
  }
}

TEST(blame, logits_that_are_all_minus_infinite_are_not_the_fault_of_biases) {
  for (const float temperature : {0.0F, 0.8F}) {
    parameters p;
    p.temperature = temperature;
    auto s = sampler::make(p, 3);
    ASSERT_TRUE(s);
    const auto got = s->sample(std::vector<float>(3, -infinity));
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().status, BITNET_INTERNAL);
    EXPECT_NE(got.error().message.find("its weights or the backend are at fault"),
              std::string::npos)
        << got.error().message;
    EXPECT_EQ(got.error().message.find("bias"), std::string::npos) << got.error().message;
  }
}

// What a two-stage head leaves: the needed ones, what equals the least of them, -infinity
// elsewhere.
std::vector<float> only_the_largest(std::vector<float> logits, uint32_t n) {
  std::vector<float> sorted = logits;
  std::ranges::sort(sorted, std::greater<>());
  for (float& l : logits)
    if (l < sorted[n - 1]) l = -infinity;
  return logits;
}

// As a device lists them: in any order, those that a whole row has and no others.
struct listed {
  std::vector<int32_t> ids;
  std::vector<float> logits;
};
listed list_of(const std::vector<float>& row, std::mt19937& random) {
  listed out;
  for (size_t i = 0; i < row.size(); ++i)
    if (row[i] > -infinity) out.ids.push_back(static_cast<int32_t>(i));
  std::ranges::shuffle(out.ids, random);
  for (const int32_t id : out.ids) out.logits.push_back(row[static_cast<size_t>(id)]);
  return out;
}

// Also where they are listed, whatever came before them.
TEST(needed, logits_give_the_same_tokens_as_all_of_them) {
  std::mt19937 random(2);
  const auto unit = [&] { return static_cast<float>(random() % 1000) / 1000; };
  int cases = 0;
  for (int i = 0; i < 2000; ++i) {
    parameters p;
    p.seed = random();
    p.temperature = random() % 3 == 0 ? 0 : .1F + 2 * unit();
    p.top_k = static_cast<int32_t>(random() % 12);
    p.top_p = random() % 2 == 0 ? 1 : unit();
    p.min_p = random() % 2 == 0 ? 0 : unit() / 4;
    p.repeat_penalty = random() % 2 == 0 ? 1 : .8F + unit();
    p.presence_penalty = random() % 2 == 0 ? 0 : unit() - .2F;
    p.frequency_penalty = random() % 2 == 0 ? 0 : unit() - .2F;
    p.repeat_last_n = static_cast<int32_t>(random() % 20) - 1;
    p.typical_p = random() % 4 == 0 ? unit() : 1;
    p.xtc_probability = random() % 4 == 0 ? unit() : 0;
    p.dynatemp_range = random() % 4 == 0 ? unit() : 0;
    p.top_n_sigma = random() % 16 == 0 ? unit() : -1;
    p.mirostat = random() % 16 == 0 ? 2 : 0;
    p.dry_multiplier = random() % 3 == 0 ? unit() : 0;
    p.dry_allowed_length = 1;
    if (random() % 2 == 0) p.logit_bias = {{0, -unit()}, {7, -infinity}};
    if (random() % 8 == 0) p.logit_bias.emplace_back(9, unit());
    std::vector<float> logits;
    for (size_t n = 0; n < 90; ++n) logits.push_back(8 * unit() - 4);
    logits[5] = logits[3];  // a tie
    sampler all = *sampler::make(p, 90), some = *sampler::make(p, 90), by_ids = made(p, 90);
    for (int step = 0; step < 8; ++step) {
      const uint32_t needed = some.needed();
      cases += needed != 0;
      std::ranges::shuffle(logits, random);
      const auto expected = all.sample(logits);
      const auto found = some.sample(needed == 0 ? logits : only_the_largest(logits, needed));
      const bool whole = needed == 0 || step == 3;
      const listed few = list_of(only_the_largest(logits, std::max(needed, 1U)), random);
      const auto listed_one =
          whole ? by_ids.sample(logits) : by_ids.sample_listed(few.ids, few.logits);
      ASSERT_EQ(expected.has_value(), found.has_value());
      ASSERT_EQ(expected.has_value(), listed_one.has_value());
      if (!expected) break;
      ASSERT_EQ(*found, *expected) << "case " << i << ", " << needed << " needed";
      ASSERT_EQ(*listed_one, *expected) << "case " << i << ", " << needed << " needed";
      by_ids.accept(*expected);
      all.accept(*expected);
      some.accept(*expected);
    }
  }
  EXPECT_GT(cases, 4000) << "of 16000";
}

// What may not come is as if its logit were minus infinity, whatever its bias is; words of the mask
// that are full, empty and cut by the end of the vocabulary.
TEST(allowed, tokens_are_all_that_come) {
  std::mt19937 random(3);
  constexpr size_t n_vocab = 200;
  for (int i = 0; i < 300; ++i) {
    parameters p;
    p.seed = random();
    p.temperature = random() % 3 == 0 ? 0 : 1.5F;
    p.top_k = static_cast<int32_t>(random() % 20);
    p.repeat_penalty = random() % 2 == 0 ? 1 : 1.3F;
    p.logit_bias = {{static_cast<int32_t>(random() % n_vocab), 50.0F}};
    std::vector<float> logits, masked;
    std::vector<uint64_t> allowed(n_vocab / 64 + 1);
    for (auto& word : allowed)
      word = random() % 3 == 0 ? 0 : random() % 3 == 0 ? ~uint64_t{0} : random();
    allowed[1] |= uint64_t{1} << 40;  // at least one
    for (size_t n = 0; n < n_vocab; ++n) {
      logits.push_back(static_cast<float>(random() % 1000) / 100);
      masked.push_back((allowed[n / 64] >> (n % 64) & 1) != 0 ? logits.back() : -infinity);
    }
    sampler given = made(p, n_vocab), slow = made(p, n_vocab);
    const listed all = list_of(logits, random);
    for (int step = 0; step < 8; ++step) {
      const auto id = i % 2 == 0 ? given.sample(logits, allowed)
                                 : given.sample_listed(all.ids, all.logits, allowed);
      ASSERT_TRUE(id) << id.error().message;
      ASSERT_EQ(*id, *slow.sample(masked));
      ASSERT_NE(masked[static_cast<size_t>(*id)], -infinity);
      given.accept(*id);
      slow.accept(*id);
    }
  }
  sampler s = made(plain(), 3);
  const std::vector<uint64_t> none{0};
  EXPECT_NE(s.sample(std::vector<float>{1, 2, 3}, none).error().message.find("no token is left"),
            std::string::npos);
}

TEST(needed, is_all_when_something_raises_a_logit_or_nothing_bounds_the_candidates) {
  const auto needs = [](const auto& change) {
    parameters p;
    change(p);
    sampler s = *sampler::make(p, 1000);
    for (const int32_t token : {1, 2, 2, 3}) s.accept(token);
    return s.needed();
  };
  EXPECT_EQ(needs([](parameters&) {}), 40U);
  EXPECT_EQ(needs([](parameters& p) { p.temperature = 0; }), 1U);
  EXPECT_EQ(needs([](parameters& p) { p.top_k = 0; }), 0U);
  EXPECT_EQ(needs([](parameters& p) { p.top_k = 1000; }), 0U);
  EXPECT_EQ(needs([](parameters& p) { p.repeat_penalty = 1.1F; }), 43U);
  EXPECT_EQ(needs([](parameters& p) { p.repeat_penalty = 0.9F; }), 0U);
  EXPECT_EQ(needs([](parameters& p) { p.presence_penalty = -1; }), 0U);
  EXPECT_EQ(needs([](parameters& p) { p.frequency_penalty = 1; }), 43U);
  EXPECT_EQ(needs([](parameters& p) { p.dry_multiplier = 1, p.dry_allowed_length = 1; }), 40U);
  EXPECT_EQ(needs([](parameters& p) { p.typical_p = 0.5F, p.xtc_probability = 1; }), 40U);
  EXPECT_EQ(needs([](parameters& p) { p.top_n_sigma = 1; }), 0U);
  EXPECT_EQ(needs([](parameters& p) { p.mirostat = 1; }), 0U);
  EXPECT_EQ(needs([](parameters& p) { p.mirostat = 1, p.temperature = 0; }), 1U);
  EXPECT_EQ(needs([](parameters& p) { p.logit_bias = {{4, -1.0F}}; }), 41U);
  EXPECT_EQ(needs([](parameters& p) { p.logit_bias = {{4, 1.0F}}; }), 0U);
}

TEST(greedy, takes_the_highest_after_bias_and_penalties_and_the_lowest_id_of_equals) {
  parameters p;
  p.temperature = 0;
  EXPECT_EQ(*made(p, 4).sample(std::vector<float>{1, 3, 3, 2}), 1);
  p.temperature = -1;
  EXPECT_EQ(*made(p, 2).sample(std::vector<float>{-infinity, -5}), 1);
  p.logit_bias = {{2, 10}};
  EXPECT_EQ(*made(p, 4).sample(std::vector<float>{1, 3, 3, 2}), 2);
  p.presence_penalty = 20;
  sampler s = made(p, 4);
  s.accept(2);
  EXPECT_EQ(*s.sample(std::vector<float>{1, 3, 3, 2}), 1);
  s.reset();
  EXPECT_EQ(*s.sample(std::vector<float>{1, 3, 3, 2}), 2) << "reset forgets the sequence";
}

TEST(logits, invalid_logits_are_rejected_with_their_index) {
  const struct {
    std::vector<float> logits;
    bitnet_status status;
    const char* part;
    const char* why;
  } rows[] = {
      {{0, 0, not_a_number}, BITNET_INTERNAL, "token 2 is NaN", "the model broke"},
      {{0, infinity, 0}, BITNET_INTERNAL, "token 1 is infinite", "the model broke"},
      {{0, 0}, BITNET_INTERNAL, "expected 3 logits, got 2", "another vocabulary"},
      {{-infinity, -infinity, -infinity},
       BITNET_INTERNAL,
       "are -infinite",
       "the model or the backend broke"},
  };
  for (const float temperature : {0.0F, 1.0F}) {
    for (const auto& r : rows) {
      parameters p;
      p.temperature = temperature;
      const auto got = made(p, 3).sample(r.logits);
      ASSERT_FALSE(got) << r.why;
      EXPECT_EQ(got.error().status, r.status) << r.why;
      EXPECT_NE(got.error().message.find(r.part), std::string::npos) << got.error().message;
    }
  }
  parameters forbidding;
  forbidding.logit_bias = {{0, -infinity}, {1, -infinity}};
  const auto none = made(forbidding, 2).sample(std::vector<float>{0, 0});
  ASSERT_FALSE(none) << "all forbidden";
  EXPECT_EQ(none.error().status, BITNET_INVALID_ARGUMENT);
  EXPECT_NE(none.error().message.find("no token is left"), std::string::npos);
  parameters p;
  p.logit_bias = {{1, 3e38F}};
  const auto got = made(p, 2).sample(std::vector<float>{0, 3e38F});
  ASSERT_FALSE(got) << "a bias past the range of float";
  EXPECT_NE(got.error().message.find("token 1 became infinite"), std::string::npos);
}

TEST(logits, invalid_listed_logits_are_rejected) {
  const struct {
    listed given;
    const char* part;
  } rows[] = {
      {{{0, 2}, {0, not_a_number}}, "token 2 is NaN"},
      {{{1, 0}, {infinity, 0}}, "token 1 is infinite"},
      {{{1, 1}, {0, 0}}, "expected 2 different tokens of 3"},
      {{{0, 3}, {0, 0}}, "expected 2 different tokens of 3"},
      {{{-1}, {0}}, "expected 1 different tokens of 3"},
      {{{0, 1}, {0}}, "expected 2 different tokens of 3"},
      {{{}, {}}, "expected 0 different tokens of 3"},
      {{{1, 2}, {-infinity, -infinity}}, "all of the model's 2 logits are -infinite"},
  };
  parameters p;
  p.temperature = 0;
  sampler s = made(p, 3);
  for (const auto& r : rows) {
    const auto got = s.sample_listed(r.given.ids, r.given.logits);
    ASSERT_FALSE(got) << r.part;
    EXPECT_EQ(got.error().status, BITNET_INTERNAL) << r.part;
    EXPECT_NE(got.error().message.find(r.part), std::string::npos) << got.error().message;
    const std::vector<int32_t> ids{2, 0};
    const std::vector<float> logits{1, 2};
    EXPECT_EQ(*s.sample_listed(ids, logits), 0) << "after " << r.part;
  }
}

TEST(parameters_check, names_the_parameter_and_its_range) {
  const struct {
    const char* name;
    std::function<void(parameters&)> change;
    bool allowed;
  } rows[] = {
      {"defaults", [](parameters&) {}, true},
      {"temperature", [](parameters& p) { p.temperature = not_a_number; }, false},
      {"temperature", [](parameters& p) { p.temperature = infinity; }, false},
      {"temperature", [](parameters& p) { p.temperature = 1e-40F; }, true},
      {"top_k", [](parameters& p) { p.top_k = -1; }, false},
      {"top_p", [](parameters& p) { p.top_p = 1.01F; }, false},
      {"top_p", [](parameters& p) { p.top_p = not_a_number; }, false},
      {"top_p", [](parameters& p) { p.top_p = 0; }, true},
      {"min_p", [](parameters& p) { p.min_p = -.1F; }, false},
      {"min_p", [](parameters& p) { p.min_p = 1; }, true},
      {"repeat_penalty", [](parameters& p) { p.repeat_penalty = 0; }, false},
      {"repeat_penalty", [](parameters& p) { p.repeat_penalty = infinity; }, false},
      {"presence_penalty", [](parameters& p) { p.presence_penalty = not_a_number; }, false},
      {"frequency_penalty", [](parameters& p) { p.frequency_penalty = -infinity; }, false},
      {"frequency_penalty", [](parameters& p) { p.frequency_penalty = -2; }, true},
      {"repeat_last_n", [](parameters& p) { p.repeat_last_n = -2; }, false},
      {"logit_bias", [](parameters& p) { p.logit_bias = {{3, 0}}; }, false},
      {"logit_bias", [](parameters& p) { p.logit_bias = {{-1, 0}}; }, false},
      {"logit_bias", [](parameters& p) { p.logit_bias = {{0, not_a_number}}; }, false},
      {"logit_bias", [](parameters& p) { p.logit_bias = {{0, infinity}}; }, false},
      {"logit_bias", [](parameters& p) { p.logit_bias = {{2, -infinity}}; }, true},
  };
  for (const auto& r : rows) {
    parameters p;
    r.change(p);
    const auto got = sampler::make(p, 3);
    EXPECT_EQ(got.has_value(), r.allowed) << r.name;
    if (got) continue;
    EXPECT_EQ(got.error().status, BITNET_INVALID_ARGUMENT) << r.name;
    EXPECT_NE(got.error().message.find(r.name), std::string::npos) << got.error().message;
  }
  EXPECT_FALSE(sampler::make(parameters{}, 0));
}

TEST(extremes, of_temperature_and_logits_still_give_a_token) {
  parameters p = plain();
  p.temperature = 1e-40F;
  EXPECT_EQ(*made(p, 3).sample(std::vector<float>{0, 1e-3F, -3e38F}), 1);
  p.temperature = 3e38F;
  for (const auto& logits : {std::vector<float>{-3e38F, 3e38F, 0}, std::vector<float>{0, 0, 0}}) {
    const auto got = made(p, 3).sample(logits);
    ASSERT_TRUE(got);
    EXPECT_LT(*got, 3);
  }
}

TEST(draws, of_a_seed_never_change) {
  // A change here changes every text that was made with a fixed seed.
  parameters p;
  p.seed = 42;
  std::vector<float> logits;
  for (int i = 0; i < 1000; ++i) logits.push_back(static_cast<float>(i * 7919 % 1000) / 125);
  sampler s = made(p, logits.size());
  std::vector<int32_t> got;
  for (int i = 0; i < 12; ++i) {
    got.push_back(*s.sample(logits));
    s.accept(got.back());
  }
  EXPECT_EQ(got, (std::vector<int32_t>{963, 173, 25, 235, 198, 988, 346, 272, 988, 741, 25, 210}));
  s.reset();
  EXPECT_EQ(*s.sample(logits), got.front());
}

TEST(draws, of_two_samplers_with_one_seed_are_equal_and_of_two_seeds_are_not) {
  const std::vector<float> logits(64, 0);
  const auto sequence = [&](uint32_t seed) {
    parameters p = plain();
    p.seed = seed;
    sampler s = made(p, logits.size());
    std::vector<int32_t> out;
    for (int i = 0; i < 20; ++i) out.push_back(*s.sample(logits));
    return out;
  };
  EXPECT_EQ(sequence(1), sequence(1));
  EXPECT_NE(sequence(0), sequence(1));
  EXPECT_NE(sequence(1), sequence(2));
}

TEST(random, is_xoshiro256_starstar_seeded_by_splitmix64) {
  // First numbers of the authors' programs for seed 0.
  random_numbers r(0);
  EXPECT_EQ(r.next(), 0x99EC5F36CB75F2B4u);
  EXPECT_EQ(r.next(), 0xBF6E1F784956452Au);
  EXPECT_EQ(r.next(), 0x1A5F849D4933E6E0u);
}

TEST(exponential_function, is_as_near_as_a_double_can_be) {
  EXPECT_EQ(exponential(0), 1);
  EXPECT_EQ(exponential(-0.0), 1);
  EXPECT_EQ(exponential(-std::numeric_limits<double>::infinity()), 0);
  EXPECT_EQ(exponential(-701), 0);
  for (int i = 0; i < 51000; ++i) {
    const double x = -699.9 + 0.0137 * i;
    const auto exact = static_cast<double>(std::exp(static_cast<long double>(x)));
    ASSERT_NEAR(exponential(x) / exact, 1, 4e-16) << x;
  }
}

}  // namespace
}  // namespace bitnet::sampling

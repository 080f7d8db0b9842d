// DRY against its definition, compared token by token; breakers; and what a hostile text costs.
#include "sampling/repetition.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "sampling/sampler.hpp"

namespace bitnet::sampling {
namespace {

using ids = std::vector<int32_t>;
using list = std::vector<std::pair<int32_t, ids>>;  // heads and tails

std::shared_ptr<const breakers> made(const list& all) {
  auto out = std::make_shared<breakers>();
  for (const auto& [head, tail] : all) out->add(head, tail);
  return out;
}

// Tokens behind the breaker that begins last, and of these the longest.
std::size_t behind_last(const ids& text, const list& all) {
  for (std::size_t at = text.size(); at-- > 0;) {
    std::size_t longest = 0;
    for (const auto& [head, tail] : all) {
      if (text[at] != head || at + tail.size() >= text.size()) continue;
      if (std::equal(tail.begin(), tail.end(), text.begin() + static_cast<long>(at) + 1))
        longest = std::max(longest, tail.size() + 1);
    }
    if (longest != 0) return text.size() - at - longest;
  }
  return text.size();
}

// Each earlier token, and how long the text before it is the same as the text's end.
std::map<int32_t, float> slow(ids text, const repetition::options& o, const list& all) {
  if (o.last_n >= 0 && text.size() > static_cast<std::size_t>(o.last_n))
    text.erase(text.begin(), text.end() - o.last_n);
  const std::size_t most = behind_last(text, all);
  std::map<int32_t, std::size_t> longest;
  for (std::size_t at = 1; at < text.size(); ++at) {
    std::size_t same = 0;
    while (same < at && text[at - 1 - same] == text[text.size() - 1 - same]) ++same;
    auto& to = longest[text[at]];
    to = std::max(to, std::min(same, most));
  }
  std::map<int32_t, float> out;
  for (const auto& [token, length] : longest) {
    if (length < static_cast<std::size_t>(o.allowed_length)) continue;
    if (std::ranges::find(all, std::pair(token, ids{})) != all.end()) continue;
    const double value = o.multiplier * std::pow(double{o.base}, length - o.allowed_length);
    out[token] = static_cast<float>(std::min(value, 1e30));
  }
  return out;
}

void expect_equal(std::span<const repetition::penalty> got,
                  const std::map<int32_t, float>& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (const auto& [token, value] : got) {
    ASSERT_TRUE(wanted.contains(token)) << token;
    EXPECT_FLOAT_EQ(value, wanted.at(token)) << token;
  }
}

TEST(repetition, is_what_its_definition_says_of_random_texts) {
  std::mt19937 random(1);
  const auto below = [&](uint32_t n) { return static_cast<int32_t>(random() % n); };
  int penalties = 0;
  for (int i = 0; i < 400; ++i) {
    const auto n_vocab = 2 + below(6);
    const repetition::options o{.multiplier = 0.8F,
                                .base = i % 3 == 0 ? 1.0F : 1.75F,
                                .allowed_length = 1 + below(4),
                                .last_n = i % 4 == 0 ? -1 : below(60)};
    list all;
    for (int n = below(3); n > 0; --n) {
      ids tail;
      for (int m = below(3); m > 0; --m) tail.push_back(below(static_cast<uint32_t>(n_vocab)));
      all.emplace_back(below(static_cast<uint32_t>(n_vocab)), tail);
    }
    repetition r(o, static_cast<uint32_t>(n_vocab), made(all));
    ids text;
    for (int n = 0; n < 90; ++n) {
      text.push_back(below(static_cast<uint32_t>(n_vocab)));
      r.add(text.back());
      if (random() % 3 != 0) continue;  // as behind a prompt, of which no token is asked
      const auto wanted = slow(text, o, all);
      ASSERT_NO_FATAL_FAILURE(expect_equal(r.penalties(), wanted)) << i << ", " << n;
      expect_equal(r.penalties(), wanted);  // asked again
      penalties += static_cast<int>(wanted.size());
    }
    r.clear();
    EXPECT_TRUE(r.penalties().empty());
  }
  EXPECT_GT(penalties, 3000);
}

TEST(repetition, is_counted_by_hand) {
  const repetition::options o{.multiplier = 1, .base = 2, .allowed_length = 2, .last_n = -1};
  const struct {
    const char* why;
    ids text;
    list all;
    std::map<int32_t, float> wanted;
  } rows[] = {
      {"1 2 came, and then 3", {1, 2, 3, 1, 2}, {}, {{3, 1}}},
      {"3 1 2 came twice", {3, 1, 2, 4, 0, 3, 1, 2}, {}, {{4, 2}}},
      {"one token is too short", {2, 3, 1, 2}, {}, {}},
      {"the longest counts, of each token that may follow",
       {1, 2, 5, 0, 1, 2, 4, 0, 1, 2},
       {},
       {{4, 2}, {5, 1}}},
      {"2 breaks: nothing is behind it", {1, 2, 3, 1, 2}, {{2, {}}}, {}},
      {"3 breaks, and gets no penalty", {1, 2, 3, 1, 2}, {{3, {}}}, {}},
      {"3 breaks with 1 behind it: only 2 is left", {1, 2, 3, 1, 2}, {{3, {1}}}, {}},
      {"3 with 7 behind it would", {1, 2, 3, 1, 2}, {{3, {7}}}, {{3, 1}}},
  };
  for (const auto& r : rows) {
    SCOPED_TRACE(r.why);
    repetition of(o, 9, made(r.all));
    for (const int32_t token : r.text) of.add(token);
    expect_equal(of.penalties(), r.wanted);
  }
}

// Each token of a text that is one token over and over has all earlier ones to look at: linear, so
// that the longest context costs milliseconds a token. A penalty has a bound: a token comes.
TEST(repetition, of_a_hostile_text_is_bounded) {
  constexpr std::size_t n = 131072;
  const ids texts[] = {ids(n, 1), [] {
                         ids out;
                         for (std::size_t i = 0; i < n; ++i) out.push_back(i % 2 == 0 ? 1 : 0);
                         return out;
                       }()};
  for (const ids& text : texts) {
    parameters p;
    p.temperature = 0;
    p.dry_multiplier = 1000;
    p.dry_base = 1000;
    p.dry_penalty_last_n = -1;
    p.dry_breakers = made({{2, {1}}});
    auto s = sampler::make(p, 3);
    ASSERT_TRUE(s) << s.error().message;
    for (const int32_t token : text) s->accept(token);
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < 4; ++i) {
      const auto token = s->sample(std::vector<float>{1, 2, -5});
      ASSERT_TRUE(token) << token.error().message;
      s->accept(*token);
    }
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
    p.logit_bias = {{0, -std::numeric_limits<float>::infinity()},
                    {2, -std::numeric_limits<float>::infinity()}};
    auto forced = sampler::make(p, 3);
    for (const int32_t token : texts[0]) forced->accept(token);
    EXPECT_EQ(*forced->sample(std::vector<float>{1, 2, -5}), 1) << "the only one that is left";
  }
}

TEST(repetition, keeps_no_more_of_a_text_than_it_looks_at) {
  const repetition::options o{.multiplier = 1, .base = 2, .allowed_length = 1, .last_n = 3};
  repetition r(o, 100, nullptr);
  ids text;
  for (int i = 0; i < 1000; ++i) {
    text.push_back(i % 7);
    r.add(text.back());
    expect_equal(r.penalties(), slow(text, o, {}));
  }
}

}  // namespace
}  // namespace bitnet::sampling

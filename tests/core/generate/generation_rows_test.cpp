// What a generation makes of its rows: whole or listed, alone or beside others.
#include "generate/generation.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "written_rows.hpp"

namespace bitnet::generate {
namespace {

using namespace testing_support;  // NOLINT(google-build-using-namespace): written rows

// Words of two letters: a vocabulary in which a grammar forbids few.
const tokenizer::tokenizer& pairs() {
  static const auto t = [] {
    tokenizer::vocabulary_data v;
    v.model = "gpt2";
    v.pre = "default";
    for (char a = 'a'; a <= 'z'; ++a)
      for (char b = 'a'; b <= 'z'; ++b) vocabularies::add(v, std::string{a, b}, token_type::normal);
    for (const char* letter : {"a", "b"}) vocabularies::add(v, letter, token_type::normal);
    v.merges = {"a b"};  // such a vocabulary has one
    v.eos = static_cast<int64_t>(v.tokens.size());
    vocabularies::add(v, "<end>", token_type::control);
    return vocabularies::made(std::move(v));
  }();
  return t;
}

std::vector<float> random_row(std::mt19937& random, uint32_t n) {
  std::normal_distribution<float> normal(0, 3);
  std::vector<float> out(n);
  for (float& l : out) l = std::round(normal(random) * 4) / 4;  // ties
  return out;
}

// The `n` largest, of equals the lower ids, in no order.
struct largest {
  ids of;
  std::vector<float> logits;
};
largest largest_of(const std::vector<float>& row, uint32_t n, std::mt19937& random) {
  largest out;
  out.of.resize(row.size());
  for (std::size_t i = 0; i < row.size(); ++i) out.of[i] = static_cast<int32_t>(i);
  std::ranges::sort(out.of, {}, [&](int32_t id) { return std::pair(-row[id], id); });
  out.of.resize(n);
  std::ranges::shuffle(out.of, random);
  for (const int32_t id : out.of) out.logits.push_back(row[id]);
  return out;
}

TEST(generation, takes_the_same_from_listed_logits_as_from_all) {
  const auto with = [](auto change) {
    options o = greedy();
    o.max_tokens = 60;
    change(o);
    return o;
  };
  const auto sampled = [](options& o) {
    o.sampling.temperature = 0.9F;
    o.sampling.top_k = 12;
    o.sampling.seed = 5;
  };
  const struct {
    const char* why;
    options o;
    const char* rules;
  } rows[] = {
      {"greedy", with([](options&) {}), nullptr},
      {"greedy, ends forbidden", with([](options& o) { o.ignore_end = true; }), nullptr},
      {"drawn", with(sampled), nullptr},
      {"drawn, repetition is punished", with([&](options& o) {
         sampled(o);
         o.sampling.repeat_penalty = 1.3F;
         o.sampling.repeat_last_n = 20;
       }),
       nullptr},
      {"a grammar forbids some", with(sampled), "root ::= [a-y]*"},
  };
  for (const auto& r : rows) {
    SCOPED_TRACE(r.why);
    std::optional<grammar::guide> one, other;
    const auto tree = text_tokens(pairs());
    options o = r.o;
    if (r.rules != nullptr) o.grammar = &one.emplace(guide_of(r.rules, tree));
    auto whole = made(o, {1, 2, 3}, generation::no_bound, pairs());
    if (r.rules != nullptr) o.grammar = &other.emplace(guide_of(r.rules, tree));
    auto listed = made(o, {1, 2, 3}, generation::no_bound, pairs());
    std::mt19937 random(4);
    for (int n = 0; n < 100 && wish_of(whole).more; ++n) {
      const auto wish = wish_of(listed);
      ASSERT_GT(wish.top_logits, 0U);
      const auto row = random_row(random, pairs().size());
      const auto top = largest_of(row, wish.top_logits, random);
      const auto by_all = whole.take({row, {}, {}});
      const std::vector<float> junk(row.size(), std::numeric_limits<float>::quiet_NaN());
      const auto by_listed = listed.take({junk, top.of, top.logits});
      ASSERT_TRUE(by_all && by_listed);
      ASSERT_EQ(*by_all, *by_listed);
    }
    EXPECT_FALSE(wish_of(listed).more);
    EXPECT_EQ(whole.so_far().stop_reason, listed.so_far().stop_reason);
  }
}

TEST(generation, wishes_for_all_logits_where_it_needs_them) {
  const struct {
    const char* why;
    std::function<void(options&)> change;
    uint32_t top;
  } rows[] = {
      {"the largest alone", [](options&) {}, 1},
      {"top-k", [](options& o) { o.sampling.temperature = 1, o.sampling.top_k = 7; }, 7},
      {"draws among all", [](options& o) { o.sampling.temperature = 1, o.sampling.top_k = 0; }, 0},
      {"log probabilities", [](options& o) { o.logprobs = true; }, 0},
      {"log probabilities with others", [](options& o) { o.logprobs = true, o.n_logprobs = 3; }, 0},
      {"others that were not asked for", [](options& o) { o.n_logprobs = 3; }, 1},
  };
  for (const auto& r : rows) {
    options o = greedy();
    r.change(o);
    auto g = made(o);
    EXPECT_EQ(wish_of(g).top_logits, r.top) << r.why;
  }
}

TEST(generation, counts_the_history_in_penalties) {
  options o = greedy();
  o.sampling.repeat_penalty = 4;
  o.max_tokens = 1;
  EXPECT_EQ(run(o, {'b'}, {'c'}).text, "b");
  EXPECT_EQ(run(o, {'b'}, {'b'}).text, "a") << "1 / 4 is less than the 0.5 of a";
}

// Rows of a chain: the next depends on all tokens before.
std::vector<float> row_behind(const ids& history, const ids& tokens, uint32_t n_vocab) {
  uint32_t seed = 17;
  for (const ids& part : {history, tokens})
    for (const int32_t id : part) seed = seed * 31 + static_cast<uint32_t>(id);
  std::mt19937 random(seed);
  return random_row(random, n_vocab);
}

ids alone(options o, const ids& history) {
  auto g = made(o, history, generation::no_bound, pairs());
  for (int n = 0; n < 100 && wish_of(g).more; ++n) {
    const auto row = row_behind(history, g.so_far().tokens, pairs().size());
    if (const auto id = g.take({row, {}, {}}); !id) throw std::runtime_error(id.error().message);
  }
  return g.so_far().tokens;
}

// Several go on from one history, one token each in turn, asked again now and then, and moved.
TEST(generation, goes_on_beside_others_as_alone) {
  const ids history{3, 1, 4};
  std::vector<generation> all;
  std::vector<ids> right;
  std::mt19937 random(8);
  for (uint32_t seed : {1U, 2U, 3U, 1U}) {
    options o;
    o.max_tokens = 20;
    o.sampling.seed = seed;
    right.push_back(alone(o, history));
    all.push_back(made(o, history, generation::no_bound, pairs()));
  }
  EXPECT_NE(right[0], right[1]) << "another seed, another text";
  EXPECT_EQ(right[0], right[3]) << "the same seed, the same text";
  for (std::size_t n = 0; n < 2000; ++n) {
    auto& g = all[random() % all.size()];
    if (!wish_of(g).more || random() % 3 == 0) continue;  // it lost its place
    const auto row = row_behind(history, g.so_far().tokens, pairs().size());
    ASSERT_TRUE(g.take({row, {}, {}}));
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_TRUE(all[i].ended());
    EXPECT_EQ(all[i].so_far().tokens, right[i]);
  }
}

TEST(generation, gives_log_probabilities_of_the_raw_logits) {
  options o = greedy();
  o.logprobs = true;
  o.n_logprobs = 2;
  o.sampling.temperature = 0.5F;
  o.sampling.top_k = 1;
  o.sampling.logit_bias = {{'z', 100.0F}};
  auto g = made(o);
  ASSERT_TRUE(wish_of(g).more);
  const auto row = row_for('q', words().size());
  ASSERT_EQ(g.take({row, {}, {}}), int32_t{'z'}) << "by its bias";
  token_logprobs right;
  find_logprobs(row, 'z', 2, right);
  EXPECT_EQ(g.last().logprobs.chosen, right.chosen);
  ASSERT_EQ(g.last().logprobs.largest.size(), 2U);
  EXPECT_EQ(g.last().logprobs.largest[0].id, 'q');
  EXPECT_EQ(g.last().logprobs.largest[1].id, 'a');
  EXPECT_EQ(g.last().logprobs.largest[0].value, right.largest[0].value);

  ASSERT_TRUE(wish_of(g).more);
  ASSERT_TRUE(give(g, eos()));
  EXPECT_LT(g.last().logprobs.chosen, 0) << "an end has one, too";
}

TEST(generation, rejects_unsupported_options) {
  const auto rejection = [](const options& o) {
    const auto g = generation::make(words(), words().size(), o, {});
    return g ? "" : std::string(g.error().message);
  };
  options o = greedy();
  o.n_logprobs = most_logprobs;
  EXPECT_EQ(rejection(o), "");
  o.n_logprobs = most_logprobs + 1;
  EXPECT_EQ(rejection(o),
            "21 log probabilities are asked for beside each token; at most 20 are possible");
  o = greedy();
  o.stop_strings = {std::string(1 << 19, 'a'), std::string(1 << 19, 'b'), "c"};
  EXPECT_NE(rejection(o).find("the stop strings have 1048577 bytes together"), std::string::npos);
  o = greedy();
  o.sampling.top_p = -1;
  EXPECT_NE(rejection(o).find("sampling parameter top_p is -1"), std::string::npos);
}

TEST(generation, an_invalid_row_fails_the_generation) {
  const std::vector<float> whole = row_for('a', words().size());
  std::vector<float> broken = whole;
  broken[5] = std::numeric_limits<float>::quiet_NaN();
  const ids listed{'a'};
  const std::vector<float> one{1};
  const struct {
    const char* why;
    bool logprobs;
    logits_row r;
    const char* message;
  } rows[] = {
      {"too short", false, {std::span(whole).first(3), {}, {}}, "logits, got 3"},
      {"not a number", false, {broken, {}, {}}, "logit of token 5 is NaN"},
      {"not a number, before log probabilities", true, {broken, {}, {}}, "logit of token 5 is NaN"},
      {"only the largest where log probabilities need all",
       true,
       {whole, listed, one},
       "log probabilities need all logits"},
  };
  for (const auto& r : rows) {
    options o = greedy();
    o.logprobs = r.logprobs;
    auto g = made(o);
    ASSERT_TRUE(wish_of(g).more);
    const auto id = g.take(r.r);
    ASSERT_FALSE(id) << r.why;
    EXPECT_EQ(id.error().status, BITNET_INTERNAL) << r.why;
    EXPECT_NE(id.error().message.find(r.message), std::string::npos) << id.error().message;
    EXPECT_TRUE(g.so_far().tokens.empty()) << r.why;
  }
}

}  // namespace
}  // namespace bitnet::generate

// Thinking that ends when it has had its tokens, on rows that a test writes.
#include "generate/thinking_bound.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "written_rows.hpp"

namespace bitnet::generate {
namespace {

using namespace testing_support;  // NOLINT(google-build-using-namespace): written rows

const int32_t opens = id_of("<think>");
const int32_t closes = id_of("</think>");

options bound(int64_t most, bool is_open, std::string begins = "<think>",
              std::string ends = "</think>") {
  options o = greedy();
  o.thinking = {most, is_open, std::move(begins), std::move(ends)};
  o.max_tokens = 8;
  return o;
}

ids joined(std::initializer_list<ids> parts) {
  ids out;
  for (const ids& one : parts) out.insert(out.end(), one.begin(), one.end());
  return out;
}

TEST(thinking_bound, ends_the_thinking_behind_its_tokens) {
  const struct {
    const char* why;
    int64_t most;
    bool is_open;
    ids script, tokens;
  } rows[] = {
      {"the prompt opened it", 3, true, bytes_of("abcdefgh"),
       joined({bytes_of("abc"), {closes}, bytes_of("efgh")})},
      {"the answer opens it", 2, false, joined({{opens}, bytes_of("abcdefg")}),
       joined({{opens}, bytes_of("ab"), {closes}, bytes_of("defg")})},
      {"behind blanks", 1, false, joined({bytes_of("\n "), {opens}, bytes_of("abcde")}),
       joined({bytes_of("\n "), {opens}, bytes_of("a"), {closes}, bytes_of("cde")})},
      {"no token may come, and the prompt opened it", 0, true, bytes_of("abcdefgh"),
       joined({{closes}, bytes_of("bcdefgh")})},
      {"no token may come, and the answer opens it", 0, false,
       joined({{opens}, bytes_of("abcdefg")}), joined({{opens, closes}, bytes_of("bcdefg")})},
      {"an answer that does not think", 1, false, bytes_of("abcdefgh"), bytes_of("abcdefgh")},
      {"a tag within the answer opens nothing", 1, false,
       joined({bytes_of("a"), {opens}, bytes_of("abcdef")}),
       joined({bytes_of("a"), {opens}, bytes_of("abcdef")})},
      {"it ends before", 4, true, joined({bytes_of("abc"), {closes}, bytes_of("defg")}),
       joined({bytes_of("abc"), {closes}, bytes_of("defg")})},
      {"it ends itself where it must", 3, true,
       joined({bytes_of("abc"), {closes}, bytes_of("defg")}),
       joined({bytes_of("abc"), {closes}, bytes_of("defg")})},
      {"it thinks once", 1, true, joined({bytes_of("ab"), {opens}, bytes_of("cdefg")}),
       joined({bytes_of("a"), {closes, opens}, bytes_of("cdefg")})},
      {"no bound", -1, true, bytes_of("abcdefgh"), bytes_of("abcdefgh")},
      {"the length ends it before", 8, true, bytes_of("abcdefgh"), bytes_of("abcdefgh")},
  };
  for (const auto& r : rows) {
    SCOPED_TRACE(r.why);
    EXPECT_EQ(run(bound(r.most, r.is_open), r.script).tokens, r.tokens);
  }
}

TEST(thinking_bound, writes_what_is_missing_of_a_tag_of_several_tokens) {
  const struct {
    const char* why;
    int64_t most;
    const char* script;
    const char* text;
  } rows[] = {
      {"all of it", 2, "abcdefgh", "ab[/T]gh"},
      {"its rest", 3, "a[/zzzgh", "a[/T]zgh"},
      {"what ends in its begin twice", 3, "a[[zzzgh", "a[[/T]gh"},
      {"the model writes it", 2, "ab[/T]gh", "ab[/T]gh"},
      {"its last token", 5, "ab[/T]gh", "ab[/T]gh"},
      {"it comes before", 6, "ab[/T]gh", "ab[/T]gh"},
  };
  for (const auto& r : rows) {
    SCOPED_TRACE(r.why);
    EXPECT_EQ(run(bound(r.most, true, "[T]", "[/T]"), bytes_of(r.script)).text, r.text);
  }
}

TEST(thinking_bound, is_recognised_by_the_text_of_a_tag_in_pieces) {
  EXPECT_EQ(run(bound(2, false, "[T]", "[/T]"), bytes_of("[T]abcdefgh")).text, "[T]ab[/T");
}

TEST(thinking_bound, holds_whatever_biases_and_stops_say) {
  options o = bound(1, true);
  o.sampling.logit_bias = {{closes, -std::numeric_limits<float>::infinity()}};
  EXPECT_EQ(run(o, bytes_of("abcdefgh")).text, "a</think>cdefgh");
  o.stop_strings = {"</think>"};
  const generated stopped = run(o, bytes_of("abcdefgh"));
  EXPECT_EQ(stopped.text, "a");
  EXPECT_EQ(stopped.reason, BITNET_STOP_STRING);
}

TEST(thinking_bound, keeps_to_a_grammar) {
  const struct {
    const char* why;
    const char* rules;
    const char* text;
  } rows[] = {
      {"at once", "root ::= [a-z]* \"</think>\" \"ok\"", "aa</think>ok"},
      {"when it may come", "root ::= \"aaaaa\" \"</think>\" \"ok\"", "aaaaa</think>ok"},
      {"never", "root ::= \"aaaaaaa\"", "aaaaaaa"},
  };
  for (const auto& r : rows) {
    SCOPED_TRACE(r.why);
    auto guide = guide_of(r.rules);
    options o = bound(2, true);
    o.max_tokens = 30;
    o.grammar = &guide;
    EXPECT_EQ(run(o, {'a'}).text, r.text);
  }
}

// A row need not have the token, and log probabilities are those of the row.
TEST(thinking_bound, takes_rows_of_the_largest_logits_and_rates_what_came) {
  auto g = made(bound(0, true));
  ASSERT_TRUE(wish_of(g).more);
  const ids listed = {'a'};
  const std::vector<float> logits = {1.0F};
  const auto id = g.take({{}, listed, logits});
  ASSERT_TRUE(id);
  EXPECT_EQ(*id, closes);
  options o = bound(0, true);
  o.logprobs = true;
  auto rated = made(o);
  ASSERT_TRUE(wish_of(rated).more);
  ASSERT_TRUE(give(rated, 'a'));
  auto plain = made([] {
    options same = greedy();
    same.logprobs = true;
    same.n_logprobs = most_logprobs;
    return same;
  }());
  ASSERT_TRUE(wish_of(plain).more);
  ASSERT_TRUE(give(plain, 'a'));
  EXPECT_LT(rated.last().logprobs.chosen, plain.last().logprobs.chosen);
}

TEST(thinking_bound, is_rejected_where_it_cannot_hold) {
  const auto rejected = [](const options& o, const tokenizer::tokenizer& with) {
    const auto g = generation::make(with, with.size(), o, ids{1});
    return g ? BITNET_OK : g.error().status;
  };
  EXPECT_EQ(rejected(bound(1, true, "<think>", std::string(65, 'x')), words()),
            BITNET_INVALID_ARGUMENT);
  EXPECT_EQ(rejected(bound(1, true, std::string(65, 'x')), words()), BITNET_INVALID_ARGUMENT);
  EXPECT_EQ(rejected(bound(1, true, "<think>", "\xff"), words()), BITNET_UNSUPPORTED);
  EXPECT_EQ(rejected(bound(-1, true, "<think>", std::string(65, 'x')), words()), BITNET_OK);
}

// SPM puts a blank before a text that it encodes.
TEST(thinking_bound, writes_the_tag_in_vocabularies_of_other_kinds) {
  const auto spm = vocabularies::made(vocabularies::spm_vocabulary());
  options o = bound(2, true);
  o.max_tokens = 40;
  const std::string text =
      run(o, vocabularies::encoded(spm, "fox"), {5}, generation::no_bound, spm).text;
  const auto at = text.find("</think>");
  ASSERT_NE(at, std::string::npos) << text;
  EXPECT_EQ(text.find("</think>", at + 1), std::string::npos) << "it comes once";
}

// Counts by what was generated alone.
TEST(thinking_bound, random_answers_never_think_longer) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    const auto pick = [&](uint32_t below) { return static_cast<int32_t>(random() % below); };
    const int64_t most = pick(6);
    const bool is_open = pick(2) == 0;
    ids script;
    for (int i = 0; i < 12; ++i)
      script.push_back(pick(6) == 0 ? opens : pick(7) == 0 ? closes : 'a' + pick(3));
    options o = bound(most, is_open);
    o.max_tokens = 12;
    const ids came = run(o, script).tokens;
    ASSERT_EQ(came.size(), script.size());
    const bool thinks = is_open || came.front() == opens;
    std::size_t n = is_open ? 0 : 1;  // tokens up to the end of the thinking
    while (thinks && n < came.size() && came[n] != closes) ++n;
    const auto n_thinking = static_cast<int64_t>(n) - (is_open ? 0 : 1);
    EXPECT_LE(thinks ? n_thinking : 0, most) << round;
    // All tokens are the script's, but for the one that was forced.
    std::size_t differ = 0;
    for (std::size_t i = 0; i < came.size(); ++i) differ += came[i] != script[i] ? 1 : 0;
    EXPECT_LE(differ, thinks && n_thinking == most ? 1U : 0U) << round;
  }
}

}  // namespace
}  // namespace bitnet::generate

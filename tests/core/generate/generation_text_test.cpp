// What text a generation gives, token by token, and what a grammar makes of it.
#include "generate/generation.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "written_rows.hpp"

namespace bitnet::generate {
namespace {

using namespace testing_support;  // NOLINT(google-build-using-namespace): written rows

// A vocabulary whose texts lack what the grammar needs.
TEST(generation, fails_where_no_token_goes_on_as_the_grammar_asks) {
  const auto only_a = std::make_shared<const grammar::prefix_tree>(
      words().size(), [](int32_t id) { return std::string(id == 'a' ? "a" : ""); });
  const struct {
    const char* why;
    const char* rules;
    int64_t max_tokens;
    int n_taken;  // before
  } rows[] = {
      {"behind a token", "root ::= \"ac\"", -1, 1},
      {"at once", "root ::= \"c\"", -1, 0},
      {"at once, also where no token is wanted", "root ::= \"c\"", 0, 0},
  };
  for (const auto& r : rows) {
    SCOPED_TRACE(r.why);
    auto guide = guide_of(r.rules, only_a);
    options o = greedy();
    o.max_tokens = r.max_tokens;
    o.grammar = &guide;
    auto g = made(o);
    for (int i = 0; i < r.n_taken; ++i) {
      ASSERT_TRUE(wish_of(g).more);
      ASSERT_TRUE(give(g, 'b'));
      EXPECT_EQ(g.last().token, 'a') << "the only one that may come";
    }
    const auto wish = g.wants();
    ASSERT_FALSE(wish);
    EXPECT_EQ(wish.error().status, BITNET_UNSUPPORTED);
    EXPECT_NE(wish.error().message.find("no token of the vocabulary goes on"), std::string::npos);
  }
}

TEST(generation, begins_the_grammar_anew) {
  auto guide = guide_of("root ::= \"ab\"");
  options o = greedy();
  o.ignore_end = true;
  o.grammar = &guide;
  for (int i = 0; i < 2; ++i) EXPECT_EQ(run(o, {'x'}).text, "ab");
  o.max_tokens = 1;  // and from the middle of it
  for (int i = 0; i < 2; ++i) EXPECT_EQ(run(o, {'x'}).text, "a");
}

TEST(generation, says_with_each_token_what_text_it_let_out) {
  const struct {
    const char* why;
    std::vector<std::string> stops;
    ids script;
    std::vector<std::string> texts;
    std::string rest;
  } rows[] = {
      {"at once", {}, bytes_of("ab"), {"a", "b"}, ""},
      {"a stop string may begin, and does not", {"END"}, bytes_of("ENd"), {"", "", "ENd"}, ""},
      {"it is found: its text never comes", {"END"}, bytes_of("aEND"), {"a", "", "", ""}, ""},
      {"a word that ends in its begin", {"xb"}, {'a', 'x', 'b'}, {"a", "", ""}, ""},
      {"what is held at the end", {"END"}, bytes_of("aEN"), {"a", "", ""}, "EN"},
      {"a character of two tokens", {}, bytes_of("\xc3\xa9"), {"", "\xc3\xa9"}, ""},
      {"half a character at the end", {}, bytes_of("a\xc3"), {"a", ""}, "\xef\xbf\xbd"},
      {"tags are text, which are control tokens here",
       {},
       {id_of("<think>"), 'a', id_of("</think>"), id_of("<tool_call>"), id_of("</tool_call>")},
       {"<think>", "a", "</think>", "<tool_call>", "</tool_call>"},
       ""},
      {"other control tokens have none", {}, {id_of("<|begin_of_text|>"), 'a'}, {"", "a"}, ""},
      {"a stop string may end in a tag", {"a</think>"}, {'a', id_of("</think>")}, {"", ""}, ""},
  };
  for (const auto& r : rows) {
    SCOPED_TRACE(r.why);
    options o = greedy();
    o.stop_strings = r.stops;
    o.max_tokens = static_cast<int64_t>(r.script.size());
    auto g = made(o);
    EXPECT_EQ(g.finish(), "") << "not before the end";
    for (std::size_t i = 0; i < r.script.size(); ++i) {
      ASSERT_TRUE(wish_of(g).more);
      ASSERT_TRUE(give(g, r.script[i]));
      EXPECT_EQ(g.last().text, r.texts[i]) << "token " << i;
      EXPECT_FALSE(g.last().is_end);
    }
    EXPECT_FALSE(wish_of(g).more);
    EXPECT_EQ(g.finish(), r.rest);
  }
}

TEST(generation, says_that_a_token_is_an_end_and_has_no_text) {
  auto g = made(greedy());
  for (const int32_t id : {int32_t{'a'}, eos()}) {
    ASSERT_TRUE(wish_of(g).more);
    ASSERT_TRUE(give(g, id));
    EXPECT_EQ(g.last().is_end, id == eos());
    EXPECT_EQ(g.last().text, id == eos() ? "" : "a") << "that of the token before is gone";
  }
}

// SPM writes a blank before a text, which is none of it.
TEST(generation, knows_whether_its_text_begins_the_sequence) {
  const auto spm = vocabularies::made(vocabularies::spm_vocabulary());
  const auto the = vocabularies::encoded(spm, "the the");
  options o = greedy();
  o.max_tokens = static_cast<int64_t>(the.size());
  EXPECT_EQ(run(o, the, {}, generation::no_bound, spm).text, "the the");
  EXPECT_EQ(run(o, the, {5}, generation::no_bound, spm).text, " the the");
}

TEST(generation, ends_where_its_text_is_not_wanted) {
  const struct {
    const char* why;
    std::vector<std::string> stops;
    int64_t max_tokens;
    ids script;
    std::size_t rejected;  // which call says no
    uint32_t reason;
    std::string text;
  } rows[] = {
      {"the first", {}, -1, bytes_of("abc"), 0, BITNET_STOP_CANCELLED, "a"},
      {"a later one", {}, -1, bytes_of("abc"), 1, BITNET_STOP_CANCELLED, "ab"},
      {"the last one: the length ends it not",
       {},
       2,
       bytes_of("ab"),
       1,
       BITNET_STOP_CANCELLED,
       "ab"},
      {"the text before a stop string, which is found first",
       {"b"},
       -1,
       {'a', 'b'},
       0,
       BITNET_STOP_CANCELLED,
       "a"},
      {"what a stop string lets out with its last byte",
       {"bcd"},
       -1,
       {'b', 'b', 'c', 'd'},
       0,
       BITNET_STOP_CANCELLED,
       "b"},
      {"the rest behind the end changes nothing", {"ab"}, 1, {'a'}, 0, BITNET_STOP_LENGTH, "a"},
  };
  for (const auto& r : rows) {
    SCOPED_TRACE(r.why);
    std::string text;
    std::size_t calls = 0;
    options o = greedy();
    o.max_tokens = r.max_tokens;
    o.stop_strings = r.stops;
    o.text = [&](std::string_view more) {
      text += more;
      return calls++ != r.rejected;
    };
    auto g = made(o);
    for (std::size_t i = 0; i < 100 && wish_of(g).more; ++i)
      ASSERT_TRUE(give(g, r.script[std::min(i, r.script.size() - 1)]));
    EXPECT_EQ(g.so_far().stop_reason, r.reason);
    const std::string before = text;
    const std::string rest = g.finish();
    EXPECT_EQ(text, before + rest);
    EXPECT_EQ(text.substr(0, r.text.size()), r.text);
  }
}

// A token may hold text and a whole stop string.
TEST(generation, ends_by_a_stop_string_also_where_the_text_before_it_is_not_wanted) {
  const std::string word = "<tool>fox";
  options o = greedy();
  o.stop_strings = {"fox"};
  std::string text;
  o.text = [&](std::string_view more) {
    text += more;
    return false;
  };
  auto g = made(o);
  ASSERT_TRUE(wish_of(g).more);
  ASSERT_TRUE(give(g, id_of(word)));
  EXPECT_EQ(text, "<tool>");
  EXPECT_EQ(g.so_far().stop_reason, BITNET_STOP_STRING);
}

}  // namespace
}  // namespace bitnet::generate

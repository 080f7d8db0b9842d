// A grammar that is written as a text and read again lets the same texts through.
#include "grammar/gbnf_text.hpp"

#include <gtest/gtest.h>

#include <random>

#include "grammar/automaton.hpp"
#include "grammar/gbnf.hpp"
#include "random_grammars.hpp"

namespace bitnet::grammar {
namespace {

// Both take the same texts, and can go on behind the same beginnings, or neither.
void expect_same(const rule_set& one, const rule_set& other, const std::string& text) {
  automaton a(one), b(other);
  const auto in_a = a.next(a.start(), text), in_b = b.next(b.start(), text);
  ASSERT_EQ(in_a == automaton::dead, in_b == automaton::dead) << text;
  if (in_a == automaton::dead) return;
  EXPECT_EQ(a.is_complete(in_a), b.is_complete(in_b)) << text;
}

TEST(gbnf_text, is_read_again_with_the_same_meaning) {
  std::mt19937 random(7);
  int n = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    const testing_support::random_grammar made(seed);
    const auto rules = parse_gbnf(made.text());
    if (!rules) continue;  // it can begin with itself
    const auto text = as_gbnf(*rules, "root");
    ASSERT_TRUE(text) << text.error().message;
    const auto again = parse_gbnf(*text);
    ASSERT_TRUE(again) << again.error().message << "\n" << *text;
    ++n;
    for (int i = 0; i < 30; ++i) {
      std::u32string word;
      for (uint32_t length = random() % 7; length > 0; --length)
        word += testing_support::letters[random() % testing_support::letters.size()];
      SCOPED_TRACE(made.text() + *text);
      expect_same(*rules, *again, testing_support::utf8(word));
    }
  }
  EXPECT_GT(n, 150);
}

// Each of them has a meaning in a literal or a class, or ends a line.
TEST(gbnf_text, escapes_what_has_a_meaning) {
  const auto rules = parse_gbnf(
      R"(root ::= "\"\\[]-^\n\r\t\x00\x7f" [\]\[\\^\-"\n\r] [^a-z\x00] [a\-z] "é\u2028\U0001F600")");
  ASSERT_TRUE(rules) << rules.error().message;
  const auto text = as_gbnf(*rules, "root");
  ASSERT_TRUE(text);
  const auto again = parse_gbnf(*text);
  ASSERT_TRUE(again) << again.error().message << "\n" << *text;
  const std::string begin("\"\\[]-^\n\r\t\0\x7f", 11);
  const std::string end = "\xc3\xa9\xe2\x80\xa8\xf0\x9f\x98\x80";
  automaton states(*again);
  for (const std::string one : {"]", "[", "\\", "^", "-", "\"", "\n", "\r", "a", "b"})
    for (const std::string other : {"a", "-", "z", "b", "^"}) {
      const auto word = begin + one + "\n" + other + end;
      expect_same(*rules, *again, word);
      const bool fits = one != "a" && one != "b" && other != "b" && other != "^";
      const auto at = states.next(states.start(), word);
      EXPECT_EQ(at != automaton::dead && states.is_complete(at), fits) << word;
    }
}

TEST(gbnf_text, gives_names_that_can_stand_beside_others) {
  const auto rules = parse_gbnf("root ::= (\"a\" | b)*\nb ::= \"b\"");
  ASSERT_TRUE(rules);
  const auto one = as_gbnf(*rules, "x-1"), other = as_gbnf(*rules, "x-11");
  ASSERT_TRUE(one && other);
  const auto both = parse_gbnf("root ::= x-1 \";\" x-11\n" + *one + *other);
  ASSERT_TRUE(both) << both.error().message;
  automaton states(*both);
  const auto at = states.next(states.start(), "ab;ba");
  EXPECT_TRUE(at != automaton::dead && states.is_complete(at));
}

TEST(gbnf_text, has_a_bound) {
  const auto rules = parse_gbnf("root ::= [a-c\\u1111-\\u2222\\u3333-\\u4444]{0,9999} \"x\"{9999}");
  ASSERT_TRUE(rules) << rules.error().message;
  const auto fits = as_gbnf(*rules, "root");
  ASSERT_TRUE(fits) << fits.error().message;
  const auto text = as_gbnf(*rules, std::string(100, 'n'));
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().status, BITNET_UNSUPPORTED);
  EXPECT_NE(text.error().message.find("more than 1048576 bytes"), std::string::npos);
}

}  // namespace
}  // namespace bitnet::grammar

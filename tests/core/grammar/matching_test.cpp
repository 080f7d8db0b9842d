// The automaton against a recogniser that is written from the meaning of grammars: random grammars,
// all short texts and random ones, byte by byte.
#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/utf8.hpp"
#include "grammar/automaton.hpp"
#include "grammar/gbnf.hpp"
#include "random_grammars.hpp"

namespace bitnet::grammar {
namespace {

using testing_support::letters;
using testing_support::random_grammar;
using testing_support::recogniser;
using testing_support::utf8;

TEST(matching, is_that_of_a_plain_recogniser) {
  int accepted = 0;
  int begun = 0;
  for (uint32_t seed = 0; seed < 60; ++seed) {
    const random_grammar grammar(seed);
    auto rules = parse_gbnf(grammar.text());
    ASSERT_TRUE(rules) << seed << ": " << rules.error().message << "\n" << grammar.text();
    automaton states(*std::move(rules));
    std::mt19937 random(seed);
    std::vector<std::u32string> texts{U""};
    for (std::size_t i = 0; i < texts.size() && texts[i].size() < 2; ++i)
      for (const char32_t c : letters) texts.push_back(texts[i] + c);
    for (int i = 0; i < 12; ++i) {  // a walk that stays alive as long as it can
      std::u32string text;
      for (int n = 0; n < 12; ++n) {
        const auto longer = text + letters[random() % letters.size()];
        if (random() % 8 != 0 && !recogniser(grammar.rules, longer).beginning()) continue;
        texts.push_back(text = longer);
      }
    }
    for (const std::u32string& text : texts) {
      recogniser judge(grammar.rules, text);
      const auto state = states.next(states.start(), utf8(text));
      const bool beginning = judge.beginning();
      const bool whole = judge.whole();
      ASSERT_EQ(state != automaton::dead, beginning) << seed << ": " << utf8(text) << "\n"
                                                     << grammar.text();
      ASSERT_EQ(states.is_complete(state), whole) << seed << ": " << utf8(text) << "\n"
                                                  << grammar.text();
      accepted += whole ? 1 : 0;
      begun += beginning ? 1 : 0;
    }
  }
  EXPECT_GT(accepted, 1000);
  EXPECT_GT(begun, accepted + 500);
}

// Every sequence of up to four bytes that begins like a character of several: alive exactly where
// some character of the class begins so.
TEST(matching, of_parts_of_characters_is_exact) {
  for (const char* one :
       {"[\\u0080-\\u00ff]", "[\\u4e00-\\u4e2f]", "[^a]", ".", "[\\U0001f600-\\U0001f64f\\u00e9]",
        "[\\ud7ff\\ue000]", "[\\uffff-\\U00010000]", "[\\U0010ffff\\u0800]"}) {
    auto rules = parse_gbnf(std::string("root ::= ") + one);
    ASSERT_TRUE(rules) << one << rules.error().message;
    const character_class of = rules->classes[0];
    std::set<std::string> beginnings, wholes;
    for (const code_range& r : of) {
      for (char32_t c = r.first; c <= r.last; ++c) {
        std::string bytes;
        append_utf8(bytes, c);
        // Of the many that begin alike, a few are enough.
        if (c - r.first > 0x2000 && r.last - c > 0x2000 && c % 0x1f != 0) continue;
        wholes.insert(bytes);
        for (std::size_t n = 1; n < bytes.size(); ++n) beginnings.insert(bytes.substr(0, n));
      }
    }
    automaton states(*std::move(rules));
    for (const std::string& text : wholes) {
      const auto state = states.next(states.start(), text);
      ASSERT_TRUE(states.is_complete(state)) << one;
    }
    std::vector<std::string> begun{""};
    for (std::size_t i = 0; i < begun.size(); ++i) {
      for (int b = 0; b < 256; ++b) {
        const std::string longer = begun[i] + static_cast<char>(b);
        const auto state = states.next(states.start(), longer);
        const bool begins = beginnings.contains(longer);
        ASSERT_EQ(state != automaton::dead && !states.is_complete(state), begins)
            << one << " byte " << b;
        if (begins && longer.size() < 3 && begun.size() < 400) begun.push_back(longer);
      }
    }
  }
}

TEST(matching, of_repetitions_and_lists_needs_few_states) {
  auto rules = parse_gbnf(R"(root ::= "[" (item ("," ws item)*)? "]"
item ::= "\"" [^"\\]* "\"" | [0-9]+ | root
ws ::= [ \n]*)");
  ASSERT_TRUE(rules) << rules.error().message;
  automaton states(*std::move(rules));
  const auto before = states.next(states.start(), "[\"a\", ");
  std::string more;
  for (int i = 0; i < 1000; ++i) more += "\"text\", 12, ";
  EXPECT_EQ(states.next(before, more), before) << "a list grew a stack";
}

TEST(matching, of_ambiguous_grammars_does_not_multiply) {
  // 2^n ways to read n letters.
  auto rules = parse_gbnf("root ::= \"a\" root \"b\" | \"a\" root \"c\" | \"a\"");
  ASSERT_TRUE(rules);
  automaton states(*std::move(rules));
  const auto state = states.next(states.start(), std::string(200, 'a') + std::string(100, 'b'));
  EXPECT_NE(state, automaton::dead);
  EXPECT_TRUE(states.is_complete(states.next(state, std::string(99, 'c'))));
  EXPECT_EQ(states.next(state, std::string(100, 'c')), automaton::dead);
  EXPECT_LT(states.bytes(), 1U << 20);
}

TEST(matching, ends_where_nesting_is_too_deep) {
  auto rules = parse_gbnf("root ::= \"(\" root \")\" | \"x\"");
  ASSERT_TRUE(rules);
  automaton states(*std::move(rules));
  auto state = states.start();
  std::size_t n = 0;
  for (auto to = states.next(state, "("); to != automaton::dead && n < 5000; ++n) {
    state = to;
    to = states.next(state, "(");
  }
  EXPECT_EQ(n, deepest);
  EXPECT_TRUE(states.is_complete(states.next(state, "x" + std::string(n, ')'))));
}

TEST(matching, goes_on_behind_what_was_forgotten) {
  auto rules = parse_gbnf("root ::= \"(\" root \")\" | [a-z\\u00e9]+");
  ASSERT_TRUE(rules);
  automaton states(*std::move(rules));
  const std::string text = "(((((abc\xc3\xa9";
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    auto state = states.next(states.start(), text.substr(0, cut));
    const auto many = states.bytes();
    state = states.forget_others(state);
    EXPECT_LE(states.bytes(), many);
    EXPECT_FALSE(states.is_complete(state));
    EXPECT_TRUE(states.is_complete(states.next(state, text.substr(cut) + ")))))"))) << cut;
    EXPECT_EQ(states.next(state, text.substr(cut) + "))))))"), automaton::dead) << cut;
    EXPECT_NE(states.next(states.start(), "(a"), automaton::dead);
  }
  EXPECT_EQ(states.forget_others(automaton::dead), automaton::dead);
}

TEST(matching, has_a_bound) {
  // Each letter leads to other places, each with thousands of frames.
  std::string text = "root ::= ";
  for (int i = 0; i < 3000; ++i)
    text +=
        (i > 0 ? " | " : "") + std::string("\"a\" root \"") + std::string(1 + i % 50, 'b') + "\"";
  auto rules = parse_gbnf(text + " | \"x\"");
  ASSERT_TRUE(rules) << rules.error().message;
  automaton states(*std::move(rules));
  states.next(states.start(), std::string(100'000, 'a'));
  ASSERT_TRUE(states.trouble());
  EXPECT_EQ(states.trouble()->status, BITNET_UNSUPPORTED);
  EXPECT_EQ(states.next(states.start(), "axb"), automaton::dead) << "nothing new is made then";
}

}  // namespace
}  // namespace bitnet::grammar

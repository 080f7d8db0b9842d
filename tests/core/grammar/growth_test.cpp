// A grammar takes time and memory linear in its length, or is rejected; following a text takes time
// linear in the text.
#include "../growth.hpp"
#include "../counted_heap.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "base/utf8.hpp"
#include "grammar/automaton.hpp"
#include "grammar/gbnf.hpp"

namespace bitnet::grammar {
namespace {

using testing_support::expect_linear;
using testing_support::times;

struct row {
  const char* why;
  std::function<std::string(std::size_t n)> grammar;  // of n parts
  std::function<std::string(std::size_t n)> text = [](std::size_t) { return std::string(); };
};

std::string rules(std::size_t n, const std::string& last) {
  std::string out = "root ::= r0\n";
  for (std::size_t i = 0; i < n; ++i)
    out += "r" + std::to_string(i) + " ::= \"a\" r" + std::to_string(i + 1) + "\n";
  return out + "r" + std::to_string(n) + " ::= " + last + "\n";
}

const row rows[] = {
    {"a literal", [](auto n) { return "root ::= \"" + times(n, "a") + "\""; },
     [](auto n) { return times(n, "a"); }},
    {"groups in a rule with a long name",
     [](auto n) {
       const std::string name = times(n, "r");
       return "root ::= " + name + "\n" + name + " ::= " + times(n, "(\"a\")");
     }},
    {"alternatives", [](auto n) { return "root ::= \"a\"" + times(n, " | \"a\""); },
     [](auto) { return std::string("a"); }},
    {"a class of many ranges",
     [](auto n) {
       std::string out = "root ::= [";
       for (std::size_t i = 0; i < n; ++i)
         append_utf8(out, static_cast<char32_t>(0x4E00 + 2 * (i % 9000)));
       return out + "]*";
     }},
    {"rules that call each other", [](auto n) { return rules(n, "\"b\""); },
     [](auto n) { return times(n, "a") + "b"; }},
    {"blank lines and comments", [](auto n) { return "root ::= \"a\"" + times(n, "\n# x\n\n"); }},
    {"a repetition", [](auto) { return std::string("root ::= [a-z]*"); },
     [](auto n) { return times(n, "abc"); }},
    {"an ambiguous repetition",
     [](auto) { return std::string("root ::= (\"a\" | \"aa\" | [a-b])*"); },
     [](auto n) { return times(n, "ab"); }},
    {"many ways that stay apart",
     [](auto) { return std::string("root ::= (\"a\" root \"b\" | \"a\" root \"c\" | \"\")"); },
     [](auto n) { return times(n < 900 ? n : 900, "a"); }},
};

TEST(growth, of_grammars_and_texts_is_linear) {
  for (const row& r : rows) {
    expect_linear(r.why, 500, [&](std::size_t n) {
      auto parsed = parse_gbnf(r.grammar(n));
      ASSERT_TRUE(parsed) << r.why << ": " << parsed.error().message;
      automaton states(*std::move(parsed));
      (void)states.next(states.start(), r.text(n));
      EXPECT_FALSE(states.trouble()) << r.why << ": " << states.trouble()->message;
    });
  }
}

TEST(growth, of_memory_is_bounded_by_what_a_grammar_may_be) {
  const std::string name = times(longest_grammar / 2, "r");
  const std::string hostile[] = {
      "root ::= " + times(longest_grammar / 12, "\"a\"{10000}"),
      "root ::= " + times(99, "(\"a\"{10000} ") + "\"b\"" + times(99, ")"),
      "root ::= \"\"\n" + name + " ::= " + times(longest_grammar / 12, "(\"\")"),
      "root ::= " + times(longest_grammar / 12, "(\"a\")?"),
      "root ::= [" + times(longest_grammar / 4, "a-z") + "]",
  };
  for (const std::string& one : hostile) {
    const testing_support::heap_use heap;
    const auto parsed = parse_gbnf(one);
    EXPECT_LE(heap.peak(), std::size_t{96} << 20) << one.substr(0, 40);
    if (!parsed) {
      EXPECT_EQ(parsed.error().status, BITNET_UNSUPPORTED) << parsed.error().message;
    }
  }
}

}  // namespace
}  // namespace bitnet::grammar

// What a grammar may say, what is rejected, and where and in which words.
#include "grammar/gbnf.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "grammar/automaton.hpp"

namespace bitnet::grammar {
namespace {

bool accepts(std::string_view grammar, std::string_view text) {
  auto rules = parse_gbnf(grammar);
  if (!rules) throw std::runtime_error(rules.error().message);
  automaton states(*std::move(rules));
  return states.is_complete(states.next(states.start(), text));
}

struct row {
  std::string why;
  std::string grammar;
  std::vector<std::string> in, out;
};
const row notation[] = {
    {"a literal", R"(root ::= "ab")", {"ab"}, {"", "a", "abc", "AB"}},
    {"no text", R"(root ::= "")", {""}, {"a"}},
    {"escapes",
     R"(root ::= "\n\t\r\\\"\x41\u00e9\U0001F600\[\]")",
     {"\n\t\r\\\"A\xc3\xa9\xf0\x9f\x98\x80[]"},
     {"\n\t\r\\\"A"}},
    {"a literal of other letters", "root ::= \"\xc3\xa9\"", {"\xc3\xa9"}, {"\xc3", "e"}},
    {"\\x is a character, not a byte", R"(root ::= "\xe9")", {"\xc3\xa9"}, {"\xe9"}},
    {"a class", "root ::= [a-cx]", {"a", "b", "c", "x"}, {"d", "-", "ab", ""}},
    {"a class of others", "root ::= [^a-c\\n]", {"d", "\xc3\xa9", "]"}, {"a", "\n", ""}},
    {"a dash at the ends", "root ::= [-a]+ [b-]", {"-a-", "ab"}, {"a", "c"}},
    {"escapes in a class", R"(root ::= [\]\[\^\-\x30\\]+)", {"]", "[^-0\\"}, {"a"}},
    {"a range behind ASCII", "root ::= [\\u4e00-\\u9fff]", {"\xe4\xb8\x80"}, {"a", "\xe3\x81\x82"}},
    {"any character", "root ::= .", {"a", "\n", "\xf0\x9f\x98\x80"}, {"", "ab", "\xff"}},
    {"alternatives", R"(root ::= "a" | "b" "c" | "")", {"a", "bc", ""}, {"b", "ac"}},
    {"alternatives on more lines",
     "root ::=\n  \"a\"\n  | \"b\" |\n  \"c\"\n",
     {"a", "b", "c"},
     {"ab"}},
    {"groups", R"(root ::= ("a" | "b") ("c" ("d")))", {"acd", "bcd"}, {"ac", "abcd"}},
    {"groups over lines", "root ::= (\n \"a\" # one\n | \"b\"\n \"c\"\n)\n", {"a", "bc"}, {"b"}},
    {"?", R"(root ::= "ab"?)", {"", "ab"}, {"a", "abab"}},
    {"*", R"(root ::= "ab"* "c")", {"c", "ababc"}, {"", "abab"}},
    {"+", R"(root ::= [0-9]+)", {"1", "123"}, {"", "a"}},
    {"{2}", R"(root ::= "a"{2})", {"aa"}, {"a", "aaa"}},
    {"{2,}", R"(root ::= "a"{2,})", {"aa", "aaaaa"}, {"a"}},
    {"{1,3}", R"(root ::= "a"{1,3})", {"a", "aa", "aaa"}, {"", "aaaa"}},
    {"{0,2} with blanks", R"(root ::= "ab" { 0 , 2 } "c")", {"c", "abc", "ababc"}, {"abababc"}},
    {"{0}", R"(root ::= "a"{0} "b")", {"b"}, {"ab"}},
    {"repetitions of repetitions", R"(root ::= (("a"*)*)* "b"?)", {"", "a", "aaab"}, {"ba"}},
    {"repetitions of what can be empty",
     R"(root ::= ("a"? "b"?){2,3})",
     {"", "ab", "ababab"},
     {"abababa"}},
    {"a repeated empty literal", R"(root ::= ""* "a")", {"a"}, {"aa"}},
    {"rules in any order, and names",
     "root ::= a-1 B_2\nB_2 ::= \"b\"\na-1 ::= \"a\"",
     {"ab"},
     {"a"}},
    {"nesting", "root ::= \"(\" root \")\" | \"x\"", {"x", "((x))"}, {"((x)", "()"}},
    {"comments and line ends", "# all\r\nroot ::= \"a\" # end\r\n\r\n# more", {"a"}, {"aa"}},
    {"an empty rule before another", "e ::= \"\"\nroot ::= e e \"a\" e", {"a"}, {""}},
};

TEST(gbnf, reads_what_the_notation_has) {
  for (const row& r : notation) {
    for (const std::string& text : r.in)
      EXPECT_TRUE(accepts(r.grammar, text)) << r.why << ": " << text;
    for (const std::string& text : r.out)
      EXPECT_FALSE(accepts(r.grammar, text)) << r.why << ": " << text;
  }
}

struct rejected {
  std::string grammar;
  std::string message;  // its begin behind "the grammar, "
};
const rejected wrong_grammars[] = {
    {"",
     "line 1, column 1: there is no rule 'root', with which every text begins; add root ::= ..."},
    {"x ::= \"a\"\n", "line 2, column 1: there is no rule 'root'"},
    {"::= \"a\"", "line 1, column 1: expected the name of a rule, found ':'"},
    {"root = \"a\"", "line 1, column 6: expected '::=' behind the name 'root', found '='"},
    {"root",
     "line 1, column 5: expected '::=' behind the name 'root', found the end of the grammar"},
    {"root ::=",
     "line 1, column 9: expected a literal, a class, a group or a rule, found the end of "
     "the grammar; write \"\" for nothing"},
    {"root ::= \"a\" |", "line 1, column 15: expected a literal"},
    {"root ::= | \"a\"",
     "line 1, column 10: expected a literal, a class, a group or a rule, found '|'"},
    {"root ::= * \"a\"",
     "line 1, column 10: expected a literal, a class, a group or a rule, found '*'"},
    {"root ::= ()", "line 1, column 11: expected a literal, a class, a group or a rule, found ')'"},
    {"root ::= \"a\" x ::= \"b\"",
     "line 1, column 16: expected a literal, a class, a group, a rule, "
     "'|' or the end of the line, found ':'"},
    {"root ::= \"a\" )", "line 1, column 14: expected a literal, a class, a group, a rule, '|' or"},
    {"root ::= \"a\" \xc3\xa9",
     "line 1, column 14: expected a literal, a class, a group, a rule, '|' or "
     "the end of the line, found '\xc3\xa9'"},
    {"root ::= (\"a\"\n | \"b\"\n",
     "line 3, column 1: expected ')' for the '(' of line 1, column 10, found "
     "the end of the grammar"},
    {"root ::= \"a\n\"", "line 1, column 10: the literal that begins here has no end on its line"},
    {"root ::= \"a", "line 1, column 10: the literal that begins here has no end on its line"},
    {"root ::= \"a\\",
     "line 1, column 12: expected n, t, r, x, u, U, \\, \", [ or ] behind a backslash, "
     "found the end of the grammar"},
    {"root ::= \"\\q\"",
     "line 1, column 11: expected n, t, r, x, u, U, \\, \", [ or ] behind a backslash, "
     "found 'q'; write \\\\ for a backslash"},
    {"root ::= \"\\^\"", "line 1, column 11: expected n, t, r"},
    {"root ::= \"\\x4\"",
     "line 1, column 14: expected 2 hexadecimal digits, found '\"' behind 1 of them"},
    {"root ::= \"\\ud800\"",
     "line 1, column 11: expected a character of Unicode, found U+D800, which is none"},
    {"root ::= \"\\U00110000\"",
     "line 1, column 11: expected a character of Unicode, found U+110000"},
    {"root ::= [a", "line 1, column 10: the class that begins here has no end on its line"},
    {"root ::= [a-", "line 1, column 10: the class that begins here has no end on its line"},
    {"root ::= [a\n]", "line 1, column 10: the class that begins here has no end on its line"},
    {"root ::= []", "line 1, column 10: the class that begins here has no character in it"},
    {"root ::= [^\\x00-\\U0010ffff]",
     "line 1, column 10: the class that begins here has no character"},
    {"root ::= [b-a]", "line 1, column 11: the range from U+0062 to U+0061 runs backwards"},
    {"root ::= \"a\"{",
     "line 1, column 14: expected a number of repetitions, as in {2}, {2,} or {2,5}, "
     "found the end of the grammar"},
    {"root ::= \"a\"{,2}", "line 1, column 14: expected a number of repetitions"},
    {"root ::= \"a\"{2 3}", "line 1, column 16: expected ',' or '}' of a repetition, found '3'"},
    {"root ::= \"a\"{3,2}", "line 1, column 13: the repetition has at least 3 and at most 2"},
    {"root ::= \"a\"{10001}",
     "line 1, column 13: the repetition is of 10001; at most 10000 are possible"},
    {"root ::= \"a\"{1,99999999999999999999}",
     "line 1, column 13: the repetition is of 999999999;"},
    {"root ::= \"a\"\nroot ::= \"b\"",
     "line 2, column 1: the rule 'root' is defined on line 1 already"},
    {"root ::= \"a\" x\n y", "line 2, column 3: expected '::=' behind the name 'y'"},
    {"root ::= \"a\" x | y",
     "line 1, column 14: the rule 'x' is used here and defined nowhere; define "
     "it, as in x ::= \"text\", or mend the name"},
    {"root ::= root \"a\" | \"b\"",
     "line 1, column 1: the rule 'root' can begin with itself (root -> root), "
     "which has no end"},
    {"root ::= a | \"x\"\na ::= b \"1\" | \"y\"\nb ::= (\"c\")? root",
     "line 1, column 1: the rule 'root' can "
     "begin with itself (root -> a -> b -> root)"},
    {"root ::= e root \"x\" | \"y\"\ne ::= \"\"",
     "line 1, column 1: the rule 'root' can begin with itself"},
    {"root ::= root", "line 1, column 1: the rule 'root' has no end"},
    {"root ::= \"x\" a\na ::= \"(\" a \")\"",
     "line 1, column 1: the rule 'root' has no end: each of its "
     "alternatives needs it again"},
};

TEST(gbnf, rejects_with_the_place_and_a_way_out) {
  for (const rejected& r : wrong_grammars) {
    const auto got = parse_gbnf(r.grammar);
    ASSERT_FALSE(got) << r.grammar;
    EXPECT_EQ(got.error().message.substr(0, 13 + r.message.size()), "the grammar, " + r.message)
        << r.grammar;
  }
}

TEST(gbnf, has_bounds) {
  const auto rejection = [](const std::string& grammar) {
    const auto got = parse_gbnf(grammar);
    return got ? std::string() : got.error().message;
  };
  EXPECT_EQ(rejection("root ::= " + std::string(100, '(') + "\"a\"" + std::string(100, ')')), "");
  EXPECT_NE(rejection("root ::= " + std::string(101, '(') + "\"a\"" + std::string(101, ')'))
                .find("column 110: groups lie more than 100 deep"),
            std::string::npos);
  EXPECT_NE(
      rejection("root ::= " + std::string(100'000, '(')).find("groups lie more than 100 deep"),
      std::string::npos);
  EXPECT_NE(rejection("root ::= \"" + std::string(longest_grammar, 'a') + "\"")
                .find("bytes; at most 1048576"),
            std::string::npos);
  EXPECT_NE(rejection("root ::= \"" + std::string(most_elements, 'a') + "\"")
                .find("more than 262144 parts"),
            std::string::npos);
  EXPECT_EQ(rejection("root ::= ((\"a\"{10000}){10000}){10000}"), "");
  EXPECT_NE(
      rejection(
          "root ::= [a]{0,10000} [b]{0,10000} [c]{0,10000} [d]{0,10000} [e]{0,10000} [f]{0,10000} "
          "[g]{0,10000}")
          .find("more than 262144 parts"),
      std::string::npos);
  std::string chain = "root ::= r0\n";  // each rule begins with the next
  for (int i = 0; i < 50'000; ++i)
    chain += "r" + std::to_string(i) + " ::= r" + std::to_string(i + 1) + "\n";
  EXPECT_EQ(rejection(chain + "r50000 ::= \"x\""), "");
  EXPECT_NE(rejection(chain + "r50000 ::= r3 | \"x\"")
                .find("begin with itself (r3 -> r4 -> r5 -> r6 -> r7 -> r8 -> ..."),
            std::string::npos);
  EXPECT_NE(rejection("root ::= \"\xff\"").find("no UTF-8 at byte 10"), std::string::npos);
}

}  // namespace
}  // namespace bitnet::grammar

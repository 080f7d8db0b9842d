// Masks where texts of plain characters may come, which are put together of sets: against every
// token tried by itself.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "grammar/gbnf.hpp"
#include "grammar/guide.hpp"

namespace bitnet::grammar {
namespace {

// Texts of 1 to 20 characters, of which some are not plain, and parts of characters.
std::vector<std::string> vocabulary() {
  const std::vector<std::string> parts{"a",    "b",   " ",  "1", "\xc3\xa9", "\xf0\x9f\x98\x80",
                                       "\"",   "\\",  "\n", "}", ",",        "\x7f",
                                       "\xc3", "\xa9"};
  std::vector<std::string> out{""};
  for (const std::string& part : parts) out.push_back(part);
  std::mt19937 random(1);
  for (int i = 0; i < 1500; ++i) {
    std::string text;
    const std::size_t plain = random() % 2 == 0 ? 6 : parts.size();
    for (std::size_t n = 1 + random() % 20; n > 0; --n) text += parts[random() % plain];
    out.push_back(text);
  }
  return out;
}

struct row {
  const char* why;
  const char* grammar;
  std::vector<const char*> begins;
};

const row rows[] = {
    {"without a bound", R"(root ::= "\"" [^"\\\x00-\x1f\x7f]* "\"")", {"\"", "\"ab"}},
    {"with a bound above and below the longest set",
     R"(root ::= "\"" [^"\\\x00-\x1f]{0,20} "\"")",
     {"\"", "\"aaaa", "\"aaaaa", "\"aaaaaaaaaaaaaaa", "\"aaaaaaaaaaaaaaaaaaaa"}},
    {"another way takes some",
     R"(root ::= "\"" ([^"\\\x00-\x1f]{0,5} | [a-b]{0,12}) "\"")",
     {"\"", "\"aa", "\"ba1"}},
    {"another way takes all for longer", R"(root ::= .{3} "x" | .{9} "\"")", {"", "ab", "abc"}},
    {"some only", R"(root ::= [a ]* "\"")", {"", "a"}},
    {"none", R"(root ::= "\n\"" root | "\"")", {"", "\n"}},
    {"the end behind any", R"(root ::= .{0,2})", {"", "a", "aa"}},
    {"a part of a character was read", R"(root ::= .* )", {"\xc3", "a\xf0\x9f"}},
    {"in a form of JSON",
     R"(root ::= "{" ("\"" [^"\\\x00-\x1f]{0,3} "\":" ("\"" [^"\\\x00-\x1f]* "\"" | [0-9]+) ","?)* "}")",
     {"{\"", "{\"a\":", "{\"a\":\"b", "{\"a\":1"}},
};

TEST(plain_runs, masks_are_those_of_every_token_tried) {
  const auto texts = vocabulary();
  const auto tree = std::make_shared<const prefix_tree>(
      static_cast<uint32_t>(texts.size()),
      [&](int32_t id) { return texts[static_cast<std::size_t>(id)]; });
  for (const row& r : rows) {
    const auto rules = parse_gbnf(r.grammar);
    ASSERT_TRUE(rules) << r.why << ": " << rules.error().message;
    for (const char* begin : r.begins) {
      guide g(*rules, tree);
      g.begin({});
      ASSERT_TRUE(g.accept(begin)) << r.why;
      const auto mask = g.allowed();
      ASSERT_TRUE(mask) << r.why;
      automaton states(*rules);
      const auto at = states.next(states.start(), begin);
      for (std::size_t id = 0; id < texts.size(); ++id) {
        const bool may = !texts[id].empty() && states.next(at, texts[id]) != automaton::dead;
        ASSERT_EQ(((*mask)[id / 64] >> (id % 64) & 1) != 0, may)
            << r.why << " behind '" << begin << "': '" << texts[id] << "'";
      }
    }
  }
}

}  // namespace
}  // namespace bitnet::grammar

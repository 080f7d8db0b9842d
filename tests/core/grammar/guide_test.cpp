// Masks, token by token, against brute force; and what a text is when it is followed.
#include "grammar/guide.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "grammar/gbnf.hpp"
#include "random_grammars.hpp"

namespace bitnet::grammar {
namespace {

using testing_support::letters;
using testing_support::random_grammar;
using testing_support::recogniser;
using testing_support::utf8;

struct words {
  std::vector<std::string> texts;
  std::vector<std::u32string> characters;  // of those that consist of whole ones, else empty
  std::shared_ptr<const prefix_tree> tree;
};

// All texts of up to two letters, some longer ones, some twice, all single bytes from 0x80 on, and
// tokens without a text.
words small_vocabulary() {
  words out;
  const auto add = [&](const std::string& bytes, const std::u32string& whole) {
    out.texts.push_back(bytes);
    out.characters.push_back(whole);
  };
  add("", U"");
  std::vector<std::u32string> texts{U""};
  for (std::size_t i = 0; i < texts.size() && texts[i].size() < 2; ++i)
    for (const char32_t c : letters) texts.push_back(texts[i] + c);
  for (const char32_t* longer : {U"aab", U"bab", U"abababab", U"ab"}) texts.emplace_back(longer);
  std::ranges::reverse(texts);  // ids in no order of their texts
  for (const auto& text : texts) add(utf8(text), text);
  for (int byte = 0x80; byte < 0x100; ++byte) add(std::string(1, static_cast<char>(byte)), U"");
  add("a\xc3", U"");
  add("\xa9z", U"");
  out.tree = std::make_shared<const prefix_tree>(
      static_cast<uint32_t>(out.texts.size()),
      [&](int32_t id) { return out.texts[static_cast<std::size_t>(id)]; });
  return out;
}

bool has(std::span<const uint64_t> mask, std::size_t id) {
  return (mask[id / 64] >> (id % 64) & 1) != 0;
}

std::vector<std::size_t> ids_of(std::span<const uint64_t> mask, std::size_t n) {
  std::vector<std::size_t> out;
  for (std::size_t id = 0; id < n; ++id)
    if (has(mask, id)) out.push_back(id);
  return out;
}

TEST(guide, masks_are_those_of_brute_force) {
  const words w = small_vocabulary();
  const std::vector<int32_t> ends{0, 3};
  std::size_t allowed_in_all = 0;
  for (uint32_t seed = 1000; seed < 1080; ++seed) {
    const random_grammar grammar(seed);
    auto rules = parse_gbnf(grammar.text());
    ASSERT_TRUE(rules) << rules.error().message;
    automaton states(*rules);  // asked for each token alone
    guide g(*std::move(rules), w.tree);
    std::mt19937 random(seed);
    for (int i = 0; i < 6; ++i) {
      g.begin(ends);
      std::string text;
      std::u32string characters;
      bool is_whole = true;  // text ends with a character
      for (int n = 0; n < 6; ++n) {
        const auto mask = g.allowed();
        ASSERT_TRUE(mask) << mask.error().message;
        const bool complete = states.is_complete(states.next(states.start(), text));
        ASSERT_EQ(g.is_complete(), complete);
        std::vector<std::size_t> texts;
        for (std::size_t id = 0; id < w.texts.size(); ++id) {
          const bool is_end = id == 0 || id == 3;
          const bool fits = !w.texts[id].empty() &&
                            states.next(states.start(), text + w.texts[id]) != automaton::dead;
          ASSERT_EQ(has(*mask, id), fits || (is_end && complete)) << seed << " token " << id;
          if (is_whole && !w.characters[id].empty() && !is_end) {
            ASSERT_EQ(has(*mask, id),
                      recogniser(grammar.rules, characters + w.characters[id]).beginning())
                << seed << ": " << text << " + " << w.texts[id] << "\n"
                << grammar.text();
          }
          if (fits) texts.push_back(id);
        }
        ASSERT_EQ(has(*mask, 0), complete);
        allowed_in_all += texts.size();
        if (texts.empty()) break;
        const std::size_t id = texts[random() % texts.size()];
        ASSERT_TRUE(g.accept(w.texts[id]));
        text += w.texts[id];
        characters += w.characters[id];
        is_whole = is_whole && !w.characters[id].empty();
      }
    }
  }
  EXPECT_GT(allowed_in_all, 5000U);
}

TEST(guide, follows_texts_one_after_the_other) {
  const words w = small_vocabulary();
  guide g(*parse_gbnf("root ::= \"a\" [ab]* \"b\""), w.tree);
  const std::vector<int32_t> first{0};
  g.begin(first);
  const auto at_begin = g.allowed();
  ASSERT_TRUE(at_begin);
  const std::vector<uint64_t> begin(at_begin->begin(), at_begin->end());
  EXPECT_FALSE(has(begin, 0));
  ASSERT_TRUE(g.accept("aab"));
  EXPECT_TRUE(g.is_complete());
  EXPECT_TRUE(has(*g.allowed(), 0));
  const std::vector<int32_t> others{1};  // a text of its own too
  g.begin(others);
  const auto again = g.allowed();
  EXPECT_TRUE(std::ranges::equal(*again, begin));
  ASSERT_TRUE(g.accept("ab"));
  EXPECT_FALSE(has(*g.allowed(), 0));
  EXPECT_TRUE(has(*g.allowed(), 1));
  EXPECT_EQ(g.accept("\xff").error().status, BITNET_INTERNAL);
}

// A stack that grows and grows makes new states all the time: most are forgotten, none matters.
TEST(guide, masks_stay_right_after_some_were_dropped) {
  std::vector<std::string> texts;
  for (int c = ' '; c < 127; ++c) texts.emplace_back(1, static_cast<char>(c));
  for (const char* open : {"((", "[[", "([", "[("}) texts.emplace_back(open);
  const std::size_t n = 400'000;  // words of a large vocabulary, so that masks fill their room
  const auto tree = std::make_shared<const prefix_tree>(n, [&](int32_t id) {
    return static_cast<std::size_t>(id) < texts.size() ? texts[static_cast<std::size_t>(id)] : "";
  });
  guide g(*parse_gbnf("root ::= \"(\" root \")\" | \"[\" root \"]\" | \"x\""), tree);
  g.begin({});
  std::mt19937 random(1);
  std::string open;
  std::size_t most = 0;
  for (int i = 0; i < 950; ++i) {
    const auto mask = g.allowed();
    ASSERT_TRUE(mask) << mask.error().message;
    const auto ids = ids_of(*mask, texts.size());
    EXPECT_EQ(ids.size(), 7U) << i;  // ( [ x and the pairs
    const char next = random() % 2 == 0 ? '(' : '[';
    open += next;
    ASSERT_TRUE(g.accept(std::string(1, next)));
    most = std::max(most, g.n_masks());
  }
  EXPECT_LT(most, 700U) << "nothing was forgotten: the test is too small";
  ASSERT_TRUE(g.accept("x"));
  for (; !open.empty(); open.pop_back()) {
    const auto ids = ids_of(*g.allowed(), texts.size());
    const std::string close = open.back() == '(' ? ")" : "]";
    ASSERT_EQ(ids.size(), 1U);
    ASSERT_EQ(texts[ids[0]], close);
    ASSERT_TRUE(g.accept(close));
  }
  EXPECT_TRUE(g.is_complete());
  EXPECT_TRUE(ids_of(*g.allowed(), texts.size()).empty());
}

TEST(guide, says_when_a_grammar_is_too_much) {
  std::string text = "root ::= ";
  for (int i = 0; i < 20'000; ++i)
    text +=
        (i > 0 ? " | " : "") + std::string("\"a\" root \"") + std::string(1 + i % 9, 'b') + "\"";
  const std::vector<std::string> texts{std::string(3000, 'a'), "x"};
  const auto tree = std::make_shared<const prefix_tree>(
      2, [&](int32_t id) { return texts[static_cast<std::size_t>(id)]; });
  guide g(*parse_gbnf(text + " | \"x\""), tree);
  g.begin({});
  const auto mask = g.allowed();
  ASSERT_FALSE(mask);
  EXPECT_EQ(mask.error().status, BITNET_UNSUPPORTED);
  EXPECT_NE(mask.error().message.find("make it say less at once"), std::string::npos);
  EXPECT_FALSE(g.allowed()) << "it stays of no use";
}

TEST(prefix_tree, has_each_text_once) {
  const std::vector<std::string> texts{"ab", "", "abc", "b", "ab", "\xff", "a"};
  const prefix_tree tree(7, [&](int32_t id) { return texts[static_cast<std::size_t>(id)]; });
  std::vector<std::string> found(7);
  std::string path;
  const auto nodes = tree.nodes();
  EXPECT_EQ(nodes.size(), 5U);  // a ab abc b \xff
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    path.resize(nodes[i].depth - 1U);
    path += static_cast<char>(nodes[i].byte);
    for (const int32_t id : tree.tokens_at(i)) found[static_cast<std::size_t>(id)] = path;
    const std::size_t behind = nodes[i].behind;
    EXPECT_TRUE(behind == nodes.size() || nodes[behind].depth <= nodes[i].depth);
    for (std::size_t below = i + 1; below < behind; ++below)
      EXPECT_GT(nodes[below].depth, nodes[i].depth);
  }
  EXPECT_EQ(found, texts);
  EXPECT_EQ(tree.longest(), 3U);
  const prefix_tree empty(0, [](int32_t) { return ""; });
  EXPECT_TRUE(empty.nodes().empty());
}

}  // namespace
}  // namespace bitnet::grammar

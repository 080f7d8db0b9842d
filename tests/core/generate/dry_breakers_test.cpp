// Texts that end a repetition, as tokens: a breaker in a text is found in its tokens, and where
// there is none, none is.
#include "generate/dry_breakers.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "../tokenizer/vocabularies.hpp"

namespace bitnet::generate {
namespace {

const tokenizer::tokenizer& words() {
  static const auto t =
      tokenizer::testing_support::made(tokenizer::testing_support::bpe_vocabulary());
  return t;
}

std::shared_ptr<const sampling::breakers> found(const std::vector<std::string>& texts) {
  auto out = find_breakers(words(), texts);
  EXPECT_TRUE(out) << out.error().message;
  return out ? *out : nullptr;
}

TEST(dry_breakers, are_all_tokens_that_contain_one) {
  const auto all =
      found({default_breakers[0], default_breakers[1], default_breakers[2], default_breakers[3]});
  int n = 0;
  for (uint32_t i = 0; i < words().size(); ++i) {
    const auto id = static_cast<int32_t>(i);
    const std::string piece = words().piece(id, true, false).value_or("");
    const bool contains = piece.find_first_of("\n:\"*") != std::string::npos;
    EXPECT_EQ(all->is_one(id), contains) << piece;
    n += contains ? 1 : 0;
  }
  EXPECT_GE(n, 4);
}

// The text as the tokenizer writes it: where a breaker stands in it, a breaker is found that begins
// in the token that has its first byte.
TEST(dry_breakers, of_several_tokens_are_found_where_they_are) {
  const std::string breaker = "fox jumps";
  const auto all = found({breaker});
  for (const std::string before : {"", "the quick brown ", "x"})
    for (const std::string behind : {"", " over", "ed"}) {
      const std::string text = before + breaker + behind;
      auto tokens = words().encode(text, {});
      ASSERT_TRUE(tokens);
      std::ranges::reverse(*tokens);  // the last first
      std::size_t n = 0;
      for (std::size_t at = 0; at < tokens->size(); ++at)
        n += all->length_at(*tokens, at) != 0 ? 1 : 0;
      const std::size_t least = behind == "ed" ? 0 : 1;  // "jumpsed" may be cut in another way
      EXPECT_GE(n, least) << text;
      EXPECT_LE(n, 1U) << text;
    }
  auto tokens = words().encode("the fox that jumps", {});
  std::ranges::reverse(*tokens);
  for (std::size_t at = 0; at < tokens->size(); ++at) EXPECT_EQ(all->length_at(*tokens, at), 0U);
}

TEST(dry_breakers, have_bounds) {
  const struct {
    std::vector<std::string> texts;
    const char* words;
  } rows[] = {{std::vector<std::string>(33, "a"), "has 33 texts; at most 32"},
              {{"a", ""}, "has 0 bytes; expected 1 to 40"},
              {{std::string(41, 'a')}, "has 41 bytes; expected 1 to 40"}};
  for (const auto& r : rows) {
    const auto got = find_breakers(words(), r.texts);
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().status, BITNET_INVALID_ARGUMENT);
    EXPECT_NE(got.error().message.find(r.words), std::string::npos) << got.error().message;
  }
  EXPECT_EQ(found({})->count(), 0U);
  EXPECT_GT(found({"\xc3\xa9", "\xa9"})->count(), 0U) << "bytes that are no characters";
}

TEST(dry_breakers, that_were_asked_for_lately_are_known) {
  known_breakers known;
  const auto first = known.find(words(), {"a"});
  ASSERT_TRUE(first);
  for (int i = 0; i < 7; ++i) ASSERT_TRUE(known.find(words(), {std::string(2U + i, 'b')}));
  EXPECT_EQ(*known.find(words(), {"a"}), *first);
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(known.find(words(), {std::string(2U + i, 'c')}));
  EXPECT_NE(*known.find(words(), {"a"}), *first) << "eight others came";
  EXPECT_FALSE(known.find(words(), {""}));
}

}  // namespace
}  // namespace bitnet::generate

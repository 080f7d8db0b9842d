// Where each pre-tokenizer cuts; expectations follow from its expressions:
// docs/reference/tokenizers.md#splitting-rules
#include "tokenizer/pre_tokenizer.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace bitnet::tokenizer {
namespace {

using pieces = std::vector<std::string>;

struct row {
  const char* pre;
  const char* text;
  pieces expected;
  const char* why;
};

const row rows[] = {
    {"llama-bpe", "", {}, "nothing"},
    {"llama-bpe", "Hello world", {"Hello", " world"}, "the blank goes with the word"},
    {"llama-bpe", "12345", {"123", "45"}, "at most three digits"},
    {"llama-bpe", "I'LL", {"I", "'LL"}, "contractions in any case"},
    {"llama-bpe", "a   b", {"a", "  ", " b"}, "the last blank goes with the word"},
    {"llama-bpe", "a   ", {"a", "   "}, "blanks at the end stay together"},
    {"llama-bpe", "a \n\n b", {"a", " \n\n", " b"}, "blanks before line ends"},
    {"llama-bpe", "!?\n\nx", {"!?\n\n", "x"}, "line ends go with punctuation"},
    {"llama-bpe", "(x", {"(x"}, "one sign may stand before letters"},
    {"llama-bpe",
     "a\xC2\xA0"
     "b",
     {"a",
      "\xC2\xA0"
      "b"},
     "a no-break space is a sign before letters"},
    {"llama-bpe",
     "1\xC2\xA0"
     "2",
     {"1", "\xC2\xA0", "2"},
     "and white space elsewhere"},
    {"llama-bpe",
     "1\xE1\xA0\x8E"
     "2",
     {"1", "\xE1\xA0\x8E", "2"},
     "U+180E is one piece either way"},
    {"llama-bpe", "!\xE1\xA0\x8E", {"!\xE1\xA0\x8E"}, "U+180E is no white space: it joins signs"},
    {"llama-bpe", "é́x", {"é", "\xCC\x81x"}, "a combining mark is no letter"},
    {"qwen2", "123", {"1", "2", "3"}, "digits one by one"},
    {"gpt-2", "12345 I'll", {"12345", " I", "'ll"}, "digits together"},
    {"gpt-2", "I'LL", {"I", "'", "LL"}, "contractions in small letters only"},
    {"gpt-2", "a\nb", {"a", "\n", "b"}, "what is not matched is a piece"},
    {"gpt-2", "a  \n", {"a", "  \n"}, "white space at the end"},
    {"falcon", "12345", {"123", "45"}, "cut after the third digit"},
    {"falcon", "a, b`c", {"a", ",", " b", "`", "c"}, "punctuation alone, ` too"},
    {"default", "a 12345", {"a", " ", "123", "45"}, "digits lose their blank and are cut"},
    {"default", "a `b", {"a", " `", "b"}, "` is no punctuation here"},
};

TEST(split, cuts_where_the_expressions_say) {
  for (const row& r : rows) {
    const auto made = pre_tokenizer::make(pre_rule_for(r.pre, "").expressions);
    ASSERT_TRUE(made) << made.error().message;
    const auto got = made->split(r.text);
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_EQ(pieces(got->begin(), got->end()), r.expected) << r.pre << ": " << r.why;
  }
}

TEST(split, says_where_an_expression_is_broken) {
  const auto made = pre_tokenizer::make({"a(b"});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().status, BITNET_INTERNAL);
  EXPECT_NE(made.error().message.find("at 3"), std::string::npos) << made.error().message;
}

TEST(split, stops_an_expression_that_works_too_long) {
  const auto made = pre_tokenizer::make({"(?:a+)+[bc]"});
  ASSERT_TRUE(made);
  const std::string text = "xy" + std::string(64, 'a');
  const auto got = made->split(text);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().status, BITNET_INVALID_ARGUMENT);
  EXPECT_NE(got.error().message.find("at byte 0"), std::string::npos) << got.error().message;
}

}  // namespace
}  // namespace bitnet::tokenizer

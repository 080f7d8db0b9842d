// The forms of text against utf8proc's own, which takes the square of the marks' number.
#include "tokenizer/unicode_forms.hpp"

#include <gtest/gtest.h>
#include <utf8proc.h>

#include <cstdlib>
#include <random>
#include <string>

#include "tokenizer/utf8.hpp"

namespace bitnet::tokenizer {
namespace {

std::string composed_by_utf8proc(const std::string& text) {
  utf8proc_uint8_t* made = utf8proc_NFC(reinterpret_cast<const utf8proc_uint8_t*>(text.c_str()));
  std::string out(reinterpret_cast<const char*>(made));
  std::free(made);
  return out;
}

TEST(unicode_forms, compose_as_utf8proc_does_each_character) {
  for (char32_t c = 1; c < 0x30000; ++c) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    std::string text;
    append_utf8(text, c);
    append_utf8(text, 0x301);
    append_utf8(text, c);
    ASSERT_EQ(composed(text), composed_by_utf8proc(text)) << static_cast<uint32_t>(c);
  }
}

TEST(unicode_forms, compose_as_utf8proc_does_random_texts) {
  // Letters that take marks, marks of many classes, parts of Hangul, and characters that are four.
  constexpr std::u32string_view some =
      U"aeoAE "
      U"가\u1100\u1161\u11A8\u0300\u0301\u0302\u0307\u0308\u0316\u0323\u0327\u0328\u0338\u0345"
      U"\u05B0\u05BC\u0915\u093C\u0958\u09C7\u09BE\u0F71\u0F72\u1E69\u1F82\u302A\u3099\u304B\u3042"
      U"\U0001D15E\U0001D165\U0001D16D\U0002F800\uFB1D\u2126\u212B";
  std::mt19937 random(7);
  for (int i = 0; i < 20'000; ++i) {
    std::string text;
    for (std::size_t n = random() % 24; n > 0; --n) append_utf8(text, some[random() % some.size()]);
    ASSERT_EQ(composed(text), composed_by_utf8proc(text)) << text;
  }
}

TEST(unicode_forms, take_off_accents_whatever_their_order) {
  EXPECT_EQ(bert_words("a\u0301\u0323\u0301e\u0323\u0301", {}), (std::vector<std::string>{"ae"}));
  EXPECT_EQ(bert_words("\u1E69 \uAC00", {}), (std::vector<std::string>{"s", "\u1100\u1161"}));
  // Marks that take room stay, in the order of their classes: 216 before 224.
  EXPECT_EQ(bert_words("a\u302E\U0001D165", {}), (std::vector<std::string>{"a\U0001D165\u302E"}));
}

}  // namespace
}  // namespace bitnet::tokenizer

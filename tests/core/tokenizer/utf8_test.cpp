// UTF-8 by the standard's table, and streams cut at every byte.
#include "tokenizer/utf8.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "tokenizer/tokenizer.hpp"
#include "vocabularies.hpp"

namespace bitnet::tokenizer {
namespace {

const std::string fffd = "\xEF\xBF\xBD";

struct row {
  std::string bytes;
  std::string expected;
  const char* why;
};

const row rows[] = {
    {"", "", "nothing"},
    {"plain", "plain", "ASCII"},
    {"é€😀", "é€😀", "two, three and four bytes"},
    {"\xFF", fffd, "never part of UTF-8"},
    {"\x80\x80", fffd + fffd, "continuations alone: one each"},
    {"\xC0\xAF", fffd + fffd, "overlong two bytes"},
    {"\xE0\x80\x80", fffd + fffd + fffd, "overlong three bytes"},
    {"\xED\xA0\x80", fffd + fffd + fffd, "a surrogate"},
    {"\xF4\x90\x80\x80", fffd + fffd + fffd + fffd, "past U+10FFFF"},
    {"\xE2\x82"
     "a",
     fffd + "a", "a beginning that is not continued: one for all of it"},
    {"\xF0\x9F\x98\xE2\x82\xAC", fffd + "€", "the next character is not swallowed"},
    {"a\xE2\x82", "a" + fffd, "cut off at the end"},
    {"\xF0\x9F\x98", fffd, "only a beginning"},
    {std::string("a\0b", 3), std::string("a\0b", 3), "NUL is a character"},
};

TEST(stream, gives_the_same_text_however_it_is_cut) {
  for (const row& r : rows) {
    for (size_t cut = 0; cut <= r.bytes.size(); ++cut) {
      for (size_t second = cut; second <= r.bytes.size(); ++second) {
        utf8_stream s;
        std::string got = s.push(r.bytes.substr(0, cut));
        got += s.push(r.bytes.substr(cut, second - cut));
        got += s.push(r.bytes.substr(second));
        got += s.finish();
        EXPECT_EQ(got, r.expected) << r.why << ", cut at " << cut << " and " << second;
      }
    }
  }
}

TEST(stream, never_gives_part_of_a_character) {
  std::mt19937 random(6);
  const std::string text = testing_support::random_text(random, 300);
  utf8_stream s;
  std::string all;
  for (const char c : text) {
    const std::string got = s.push(std::string(1, c));
    EXPECT_FALSE(first_invalid_utf8(got));
    all += got;
  }
  EXPECT_EQ(s.finish(), "");
  EXPECT_EQ(all, text);
}

TEST(stream, can_be_used_again_after_finish) {
  utf8_stream s;
  EXPECT_EQ(s.push("\xE2"), "");
  EXPECT_EQ(s.finish(), fffd);
  EXPECT_EQ(s.finish(), "");
  EXPECT_EQ(s.push("x"), "x");
}

TEST(characters, every_code_point_comes_back) {
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::string bytes;
    append_utf8(bytes, c);
    const utf8_char got = first_utf8_char(bytes);
    ASSERT_EQ(got.state, utf8_state::complete);
    ASSERT_EQ(got.code_point, c);
    ASSERT_EQ(got.length, bytes.size());
  }
}

TEST(bytes, each_has_its_own_letter) {
  std::string all;
  std::string letters;
  for (int b = 0; b < 256; ++b) {
    all.push_back(static_cast<char>(b));
    letters += byte_to_text(static_cast<unsigned char>(b));
  }
  EXPECT_EQ(text_to_bytes(letters), all);
  EXPECT_EQ(byte_to_text(' '), "Ġ");
  EXPECT_EQ(byte_to_text('\n'), "Ċ");
  EXPECT_EQ(byte_to_text('!'), "!");
  EXPECT_EQ(byte_to_text(0xAD), "\xC5\x83") << "the last of the 68: U+0143";
  EXPECT_FALSE(text_to_bytes("中"));
  EXPECT_FALSE(text_to_bytes(" ")) << "a plain blank stands for no byte";
}

TEST(quoting, leaves_nothing_that_a_terminal_would_obey) {
  EXPECT_EQ(in_quotes("a\x1b[0m\"\\é"), "\"a\\x1b[0m\\x22\\x5c\\xc3\\xa9\"");
  EXPECT_EQ(in_quotes(std::string(60, 'x')), "\"" + std::string(48, 'x') + "\"...");
}

}  // namespace
}  // namespace bitnet::tokenizer

// What reaches a terminal, a log or a message: nothing that it would obey, and valid UTF-8.
#include "text/printable.hpp"

#include <gtest/gtest.h>

#include <string>

namespace bitnet::text {
namespace {

struct row {
  const char* why;
  std::string in, out;
};

TEST(printable, escapes_control_characters) {
  for (const row& r : {
           row{"plain", "cpu 0 \\x1b", "cpu 0 \\x1b"},
           {"UTF-8 of two, three and four bytes", "\u00e4 \u20ac \U0001F600",
            "\u00e4 \u20ac \U0001F600"},
           {"an escape sequence", "\033[2J", "\\x1b[2J"},
           {"line ends and tabs", "a\nb\tc\r\x7f", "a\\nb\\tc\\r\\x7f"},
           {"a NUL", std::string("a\0b", 3), "a\\x00b"},
           {"the C1 escape",
            "\xc2\x9b"
            "2J",
            "\\xc2\\x9b2J"},
           {"the first character after them", "\u00a0", "\u00a0"},
           {"right to left from here", "a\u202eb", "a\\xe2\\x80\\xaeb"},
           {"isolated", "\u2066", "\\xe2\\x81\\xa6"},
           {"a line end of Unicode", "\u2028", "\\xe2\\x80\\xa8"},
           {"a dash near them", "\u2014", "\u2014"},
           {"a lone continuation byte", "a\x80", "a\\x80"},
           {"a cut character", "a\xe2\x82", "a\\xe2\\x82"},
           {"an overlong slash", "\xc0\xaf", "\\xc0\\xaf"},
           {"overlong in three bytes", "\xe0\x80\xaf", "\\xe0\\x80\\xaf"},
           {"overlong in four bytes", "\xf0\x80\x80\xaf", "\\xf0\\x80\\x80\\xaf"},
           {"a surrogate", "\xed\xa0\x80", "\\xed\\xa0\\x80"},
           {"beyond U+10FFFF", "\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"},
           {"no UTF-8 at all", "\xff\xfe", "\\xff\\xfe"},
       }) {
    EXPECT_EQ(printable(r.in), r.out) << r.why;
    EXPECT_EQ(printable(r.out), r.out) << r.why << ", twice";
  }
}

TEST(printable, cuts_between_characters) {
  EXPECT_EQ(printable("12345", 5), "12345");
  EXPECT_EQ(printable("123456", 5), "12345...");
  EXPECT_EQ(printable("123\u20ac", 5), "123...");
  EXPECT_EQ(printable("123\033", 5), "123...");
}

TEST(printable, lines_stay) {
  EXPECT_EQ(printable_lines("one\n\ttwo\033\n"), "one\n\ttwo\\x1b\n");
  EXPECT_EQ(printable_lines(""), "");
  EXPECT_EQ(printable_lines("\n\na"), "\n\na");
}

TEST(printable, escapes_all_but_ascii) {
  EXPECT_EQ(printable_ascii("a\u00e4\n\"", "\""), "a\\xc3\\xa4\\x0a\\x22");
}

}  // namespace
}  // namespace bitnet::text

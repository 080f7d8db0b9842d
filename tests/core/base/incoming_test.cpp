#include "text/incoming.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace bitnet::text {
namespace {

using namespace std::string_literals;

TEST(incoming, text_of_any_editor_is_decoded) {
  const struct {
    const char* why;
    std::string bytes;
    std::string expected;
  } rows[] = {
      {"nothing to do", "a\nb\n", "a\nb\n"},
      {"Windows", "a\r\nb\r\n\r\n", "a\nb\n\n"},
      {"Notepad's mark", "\xEF\xBB\xBFroot ::= \"a\"\r\n", "root ::= \"a\"\n"},
      {"a mark that is not at the begin is a character", "a\xEF\xBB\xBF", "a\xEF\xBB\xBF"},
      {"one mark only",
       "\xEF\xBB\xBF\xEF\xBB\xBF"
       "a",
       "\xEF\xBB\xBF"
       "a"},
      {"a return alone, as progress bars write it", "a\rb\r", "a\rb\r"},
      {"the last return before a line end", "a\r\r\n", "a\r\n"},
      {"what is no UTF-8 is left to the next reader", "\xff\xe9 a", "\xff\xe9 a"},
      {"empty", "", ""},
      {"the mark alone", "\xEF\xBB\xBF", ""},
  };
  for (const auto& r : rows) {
    const auto text = incoming(r.bytes);
    ASSERT_TRUE(text) << r.why << ": " << text.error();
    EXPECT_EQ(*text, r.expected) << r.why;
  }
}

TEST(incoming, input_that_is_not_text_is_rejected_by_source) {
  const struct {
    const char* why;
    std::string bytes;
    const char* says;
  } rows[] = {
      {"PowerShell's >", "\xFF\xFEh\0i\0"s, "it is UTF-16, and text is UTF-8 here"},
      {"the other order", "\xFE\xFF\0h\0i"s, "iconv -f UTF-16 -t UTF-8"},
      {"without a mark", "h\0i\0\n\0"s, "UTF-16"},
      {"without a mark, the other order", "\0h\0i\0\n"s, "UTF-16"},
      {"UTF-32", "\xFF\xFE\0\0h\0\0\0"s, "it is UTF-32"},
      {"UTF-32, the other order", "\0\0\xFE\xFF\0\0\0h"s, "it is UTF-32"},
      {"a model in place of a prompt", "GGUF\3\0\0\0\x1c\0"s, "a byte 0 at offset 5"},
      {"one byte 0 in a text", "a text\0 with more"s, "a byte 0 at offset 6, which no text has"},
  };
  for (const auto& r : rows) {
    const auto text = incoming(r.bytes);
    ASSERT_FALSE(text) << r.why;
    EXPECT_NE(text.error().find(r.says), std::string::npos) << r.why << ": " << text.error();
  }
}

TEST(incoming, lines_are_the_lines_of_the_whole) {
  for (const std::string& whole : {"\xEF\xBB\xBF/bye\r\n\"\"\"a\r\nb\"\"\"\r\n"s, "a\n\nb\n"s,
                                   "\xEF\xBB\xBF\n\xEF\xBB\xBF\n"s}) {
    incoming_lines lines;
    std::string joined;
    for (std::size_t at = 0; at < whole.size();) {
      const auto end = whole.find('\n', at);
      joined += lines.next(whole.substr(at, end - at)).value() + '\n';
      at = end + 1;
    }
    EXPECT_EQ(joined, incoming(whole).value());
  }
  incoming_lines wide;
  EXPECT_NE(wide.next("\xFF\xFEh\0i\0"s).error().find("UTF-16"), std::string::npos);
  incoming_lines zero;
  EXPECT_TRUE(zero.next("a"));
  EXPECT_NE(zero.next("b\0"s).error().find("offset 1"), std::string::npos);
}

}  // namespace
}  // namespace bitnet::text

#include "plugin/text.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "plugin/codes.hpp"

namespace bitnet::plugin {
namespace {

TEST(printable, keeps_text_and_replaces_what_terminals_obey) {
  struct row {
    const char* why;
    std::string in, out;
  };
  for (const row& r : {
           row{"plain", "cpu 0", "cpu 0"},
           {"UTF-8 of two, three and four bytes", "\u00e4 \u20ac \U0001F600",
            "\u00e4 \u20ac \U0001F600"},
           {"an escape sequence", "\033[2J", "?[2J"},
           {"line ends and tabs", "a\nb\tc\x7f", "a?b?c?"},
           {"a NUL", std::string("a\0b", 3), "a?b"},
           {"the C1 escape",
            "\xc2\x9b"
            "2J",
            "?2J"},
           {"a lone continuation byte", "a\x80", "a?"},
           {"a cut character", "a\xe2\x82", "a??"},
           {"an overlong slash", "\xc0\xaf", "??"},
           {"overlong in three bytes", "\xe0\x80\xaf", "???"},
           {"overlong in four bytes", "\xf0\x80\x80\xaf", "????"},
           {"a surrogate", "\xed\xa0\x80", "???"},
           {"beyond U+10FFFF", "\xf4\x90\x80\x80", "????"},
           {"no UTF-8 at all", "\xff\xfe", "??"},
       })
    EXPECT_EQ(printable(r.in), r.out) << r.why;
}

TEST(printable, cuts_between_characters) {
  EXPECT_EQ(printable("12345", 5), "12345");
  EXPECT_EQ(printable("123456", 5), "12345...");
  EXPECT_EQ(printable("123\u20ac", 5), "123...");
}

TEST(printable, arrays_need_not_end) {
  const char full[4] = {'a', 'b', 'c', 'd'};
  const char ended[4] = {'a', '\0', 'c', 'd'};
  EXPECT_EQ(printable_array(full), "abcd");
  EXPECT_EQ(printable_array(ended), "a");
}

TEST(backend_name, rules) {
  for (const char* good :
       {"a", "0", "cpu", "level-zero", "org.example_npu", "abcdefghijklmnopqrstuvwxyz012345"})
    EXPECT_TRUE(is_backend_name(good)) << good;
  for (const char* bad :
       {"", "-a", ".a", "_a", "CPU", "a b", "a/b", "\u00e4", "abcdefghijklmnopqrstuvwxyz0123456"})
    EXPECT_FALSE(is_backend_name(bad)) << bad;
}

TEST(join, puts_separators_between) {
  EXPECT_EQ(join({}, ","), "");
  EXPECT_EQ(join({"a"}, ","), "a");
  EXPECT_EQ(join({"a", "b"}, ", "), "a, b");
}

TEST(codes, are_unique_and_have_hints) {
  std::set<std::string_view> texts;
#define BITNET_CODE_CHECK(id, text, hint)                        \
  EXPECT_TRUE(texts.insert(code_text(code::id)).second) << text; \
  EXPECT_EQ(code_text(code::id), text);                          \
  EXPECT_EQ(code_hint(code::id).empty(), code::id == code::ok) << text;
  BITNET_CODES(BITNET_CODE_CHECK)
#undef BITNET_CODE_CHECK
}

}  // namespace
}  // namespace bitnet::plugin

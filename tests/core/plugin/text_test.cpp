#include "plugin/codes/text.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>

#include "plugin/codes/codes.hpp"

namespace bitnet::plugin {
namespace {

TEST(printable, arrays_need_not_end) {
  const char full[4] = {'a', 'b', 'c', 'd'};
  const char ended[4] = {'a', '\0', 'c', 'd'};
  EXPECT_EQ(printable_array(full), "abcd");
  EXPECT_EQ(printable_array(ended), "a");
}

TEST(backend_name, accepts_only_short_names_in_lower_case) {
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

// A program that embeds the library has no commands that could help.
TEST(codes, hints_name_no_command_of_the_program) {
#define BITNET_HINT_CHECK(id, text, hint)                            \
  EXPECT_FALSE(std::string_view(hint).contains("`bitnet ")) << text; \
  EXPECT_FALSE(std::string_view(hint).contains("--")) << text;
  BITNET_CODES(BITNET_HINT_CHECK)
#undef BITNET_HINT_CHECK
}

}  // namespace
}  // namespace bitnet::plugin

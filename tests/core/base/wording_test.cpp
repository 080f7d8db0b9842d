// What messages call options: the library's words, or the program's.
#include "base/wording.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <iterator>
#include <string>

namespace bitnet {
namespace {

struct row {
  const char *id, *library, *program;
};

#define BITNET_WORDING_ROW(id, library, program) {#id, library, program},
constexpr row rows[] = {BITNET_WORDING(BITNET_WORDING_ROW)};
#undef BITNET_WORDING_ROW

class wording : public testing::Test {
 protected:
  void TearDown() override {  // they are of the process
    for (const row& one : rows) EXPECT_TRUE(set_wording(one.id, nullptr));
  }
};

TEST_F(wording, is_the_librarys_until_a_program_sets_its_own) {
  EXPECT_EQ(say(word::n_context), "n_context");
  ASSERT_TRUE(set_wording("n_context", "--ctx-size"));
  EXPECT_EQ(say(word::n_context), "--ctx-size");
  EXPECT_EQ(say(word::n_batch), "n_batch");
  ASSERT_TRUE(set_wording("n_context", nullptr));
  EXPECT_EQ(say(word::n_context), "n_context");
}

TEST_F(wording, of_each_row_can_be_set_to_what_the_program_says) {
  for (std::size_t i = 0; i < std::size(rows); ++i) {
    EXPECT_EQ(say(static_cast<word>(i)), rows[i].library);
    ASSERT_TRUE(set_wording(rows[i].id, rows[i].program)) << rows[i].id;
    EXPECT_EQ(say(static_cast<word>(i)), rows[i].program);
  }
}

TEST_F(wording, stands_in_constants_between_braces) {
  ASSERT_TRUE(set_wording("request_it", "ask for it with --device"));
  const struct {
    const char *why, *text, *said;
  } texts[] = {
      {"a word", "{sign_file}, or not", "sign the file, or not"},
      {"two, one of them set", "{probe_all}, or {request_it}",
       "probe all backends, or ask for it with --device"},
      {"no word of ours", "{n_contexts} {", "{n_contexts} {"},
      {"nothing to say", "", ""},
  };
  for (const auto& one : texts) EXPECT_EQ(say_in(one.text), one.said) << one.why;
}

TEST_F(wording, that_no_message_can_have_is_rejected) {
  EXPECT_EQ(set_wording("n_contexts", "--ctx-size").error().status, BITNET_NOT_FOUND);
  EXPECT_EQ(set_wording("", "--ctx-size").error().status, BITNET_NOT_FOUND);
  for (const std::string& text :
       {std::string(), std::string("two\nlines"), std::string(101, 'x'), std::string("\xff")})
    EXPECT_EQ(set_wording("n_context", text.c_str()).error().status, BITNET_INVALID_ARGUMENT)
        << text;
  EXPECT_TRUE(set_wording("n_context", std::string(100, 'x').c_str()));
}

}  // namespace
}  // namespace bitnet

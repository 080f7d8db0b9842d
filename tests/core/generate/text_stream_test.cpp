#include "generate/text_stream.hpp"

#include "../growth.hpp"

#include <gtest/gtest.h>

namespace bitnet::generate {
namespace {

struct row {
  const char* why;
  std::vector<std::string> stops;
  std::vector<std::string> pieces;
  std::vector<std::string> shown;  // after each piece
  std::string rest;                // what finish gives
  int stopped_by;                  // -1: none
};

TEST(text_stream, holds_back_what_could_become_a_stop_string) {
  const row rows[] = {
      {"no stop strings: everything at once", {}, {"a", "b"}, {"a", "b"}, "", -1},
      {"a beginning is held and released when it turns out harmless",
       {"END"},
       {"x E", "N", "d"},
       {"x ", "", "ENd"},
       "",
       -1},
      {"a stop string over three tokens is never seen",
       {"END"},
       {"x E", "N", "D y", "z"},
       {"x ", "", "", ""},
       "",
       0},
      {"what is held comes out when the generation ends", {"\n\nQ:"}, {"a\n"}, {"a"}, "\n", -1},
      {"a beginning inside a beginning", {"aab"}, {"aa", "ab"}, {"", "a"}, "", 0},
      {"the earliest stop string wins", {"world", "lo"}, {"hello world"}, {"hel"}, "", 1},
      {"an empty stop string is none", {""}, {"a"}, {"a"}, "", -1},
      {"a character cut in two", {}, {"\xc3", "\xa9!"}, {"", "\xc3\xa9!"}, "", -1},
      {"half a character at the end", {}, {"a\xc3"}, {"a"}, "\xef\xbf\xbd", -1},
      {"a stop string that ends inside a token", {"."}, {"One. Two"}, {"One"}, "", 0},
  };
  for (const row& r : rows) {
    text_stream s(r.stops);
    for (std::size_t i = 0; i < r.pieces.size(); ++i)
      EXPECT_EQ(s.push(r.pieces[i]), r.shown[i]) << r.why << ", piece " << i;
    EXPECT_EQ(s.finish(), r.rest) << r.why;
    EXPECT_EQ(s.stopped_by() ? static_cast<int>(*s.stopped_by()) : -1, r.stopped_by) << r.why;
  }
}

TEST(text_stream, takes_time_linear_in_the_text_whatever_the_stop_strings_are) {
  using testing_support::times;
  testing_support::expect_linear("one that nearly comes", 2000, [](std::size_t n) {
    text_stream s({times(n / 2, "a") + "b", times(n, "ab") + "c"});
    for (std::size_t i = 0; i < n; ++i) (void)s.push("a");
    (void)s.finish();
  });
  testing_support::expect_linear("many", 2000, [](std::size_t n) {
    std::vector<std::string> stops;
    for (std::size_t i = 0; i < n; ++i) stops.push_back("x" + std::to_string(i) + "y");
    text_stream s(stops);
    for (std::size_t i = 0; i < n; ++i) (void)s.push("x12");
  });
}

}  // namespace
}  // namespace bitnet::generate

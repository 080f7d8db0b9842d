#pragma once
// JSON texts cut into the texts of their parts, so that numbers and escapes stay as they were
// written.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bitnet::json {

// Whether it is one JSON value, with lists and objects 64 deep at most; white space around it may
// be.
bool is_whole(std::string_view text);

// Of an object that is_whole(): names decoded, values as they stand, without white space around.
std::vector<std::pair<std::string, std::string_view>> members_of(std::string_view object);
// Of a list that is_whole().
std::vector<std::string_view> elements_of(std::string_view list);
// What a string that is_whole() says.
std::string decoded(std::string_view string);

std::string_view trimmed(std::string_view text);  // of JSON's white space

// Finds where a value that begins with a bracket ends, of JSON or, with `single_quotes`, of Python;
// may be given the text piece by piece.
class bracket_finder {
 public:
  explicit bracket_finder(bool single_quotes = false) : single_quotes_(single_quotes) {}
  // Whether the next byte is within a string.
  [[nodiscard]] bool in_string() const { return quote_ != '\0'; }
  // True once the bracket that came first is closed; then no byte may follow.
  bool take(char c);

 private:
  bool single_quotes_;
  std::size_t depth_ = 0;
  char quote_ = '\0';  // that the string which was begun ends with
  bool escaped_ = false;
};

}  // namespace bitnet::json

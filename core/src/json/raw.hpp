#pragma once
// Splits JSON texts into the texts of their parts, so that numbers and escapes keep their spelling.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bitnet::json {

// Whether it is exactly one JSON value, nested at most 64 deep; white space may surround it.
bool is_whole(std::string_view text);

// Members of an object, which is_whole(): names decoded, values as written, trimmed.
std::vector<std::pair<std::string, std::string_view>> members_of(std::string_view object);
// Elements of a list, which is_whole().
std::vector<std::string_view> elements_of(std::string_view list);
// Decodes a string, which is_whole().
std::string decoded(std::string_view string);

std::string_view trimmed(std::string_view text);  // removes JSON's white space

// Finds the end of a value that begins with a bracket, in JSON or, with `single_quotes`, in Python.
// The text may come in pieces.
class bracket_finder {
 public:
  explicit bracket_finder(bool single_quotes = false) : single_quotes_(single_quotes) {}
  // Whether the next byte is inside a string.
  [[nodiscard]] bool in_string() const { return quote_ != '\0'; }
  // Returns true when the first bracket is closed; take no byte after that.
  bool take(char c);

 private:
  bool single_quotes_;
  std::size_t depth_ = 0;
  char quote_ = '\0';  // the quote that ends the open string; '\0': none is open
  bool escaped_ = false;
};

}  // namespace bitnet::json

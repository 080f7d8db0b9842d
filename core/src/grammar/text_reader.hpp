#pragma once
// Reads the characters of a grammar, with their lines and columns. The first error ends the text,
// so that later reads find nothing more.

#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "grammar/rules.hpp"

namespace bitnet::grammar {

class text_reader {
 public:
  explicit text_reader(std::string_view text) : text_(text) {}  // UTF-8

  [[nodiscard]] bool at_end() const { return at_ == text_.size(); }
  [[nodiscard]] bool at(char c) const { return !at_end() && text_[at_] == c; }
  [[nodiscard]] bool at_line_end() const { return at_end() || at('\n') || at('\r'); }
  [[nodiscard]] text_position where() const { return where_; }

  char32_t take();  // 0 at the end
  bool skip(char c);
  bool skip(std::string_view word);
  // Skips blanks and comments; line ends only if `line_ends`.
  void skip_blank(bool line_ends);
  std::string take_name();                // letters, digits, - and _; "" if there is none
  std::optional<uint32_t> take_number();  // 999999999 if it is larger
  // Reads an escape; `in_class`: also of the characters that are special in brackets.
  char32_t take_escape(bool in_class);

  // Returns to the position of `to`, an earlier copy of this reader, unless an error was found.
  void go_back(const text_reader& to) {
    if (!trouble_) *this = to;
  }

  [[nodiscard]] std::string found() const;  // "'x'", "the end of the line"
  void wrong(text_position where, const std::string& what,
             bitnet_status status = BITNET_INVALID_ARGUMENT);
  void wrong(const std::string& what) { wrong(where_, what); }
  [[nodiscard]] const std::optional<failure>& trouble() const { return trouble_; }

 private:
  char32_t take_hex(int digits, text_position begin);

  std::string_view text_;
  std::size_t at_ = 0;
  text_position where_;
  std::optional<failure> trouble_;
};

[[nodiscard]] std::string shown_name(const std::string& name);  // the begin of a long one

// "the grammar, line 3, column 7: ..."
[[nodiscard]] failure wrong_at(text_position where, const std::string& what,
                               bitnet_status status = BITNET_INVALID_ARGUMENT);

}  // namespace bitnet::grammar

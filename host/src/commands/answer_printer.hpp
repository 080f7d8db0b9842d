#pragma once
// Prints an answer as it comes, with what the model thinks set off from what it says.

#include <string_view>

#include "library/answer_parts.hpp"
#include "result.hpp"
#include "terminal/console.hpp"

namespace bitnet::host {

// On a terminal all of it as the model writes it, thinking and calls in colours if there are any.
// Elsewhere standard output gets what the model says, and its calls; the thinking goes to standard
// error. Without `shows_reasoning` it goes nowhere.
class answer_printer {
 public:
  answer_printer(const console& out, bool shows_reasoning);

  // False when standard output cannot be written; printed() says why.
  bool take(std::string_view text);
  bool finish();
  [[nodiscard]] const result<void>& printed() const { return printed_; }

 private:
  bool print_all(const std::vector<answer_piece>& pieces);
  void print_reasoning(const answer_piece& one);
  void print_content(std::string_view text);

  const console& out_;
  bool shows_reasoning_;
  bool on_terminal_;
  answer_splitter splitter_;
  bool thinks_ = false;        // the block has begun and not ended
  bool skips_blanks_ = false;  // those between a block that is not beside it and the text
  result<void> printed_;
};

}  // namespace bitnet::host

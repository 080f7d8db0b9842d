#include "commands/answer_printer.hpp"

#include <unistd.h>

#include <algorithm>

#include "terminal/output.hpp"
#include "text/printable.hpp"

namespace bitnet::host {
namespace {

constexpr int dim = 2;
constexpr int yellow = 33;

std::string_view written(const answer_piece& one) {
  const bool thinks = one.of == part::reasoning;
  switch (one.what) {
    case answer_piece::kind::begins:
      return thinks ? thinking_begins : call_begins;
    case answer_piece::kind::ends:
      return thinks ? thinking_ends : call_ends;
    case answer_piece::kind::text:
      break;
  }
  return one.text;
}

}  // namespace

answer_printer::answer_printer(const console& out, bool shows_reasoning)
    : out_(out), shows_reasoning_(shows_reasoning), on_terminal_(::isatty(STDOUT_FILENO) == 1) {}

bool answer_printer::take(std::string_view text) {
  return print_all(splitter_.take(text));
}

bool answer_printer::finish() {
  if (!print_all(splitter_.finish())) return false;
  if (!thinks_) return true;
  if (shows_reasoning_ && !on_terminal_) out_.raw("\n");
  out_.note("the answer ended within its thinking; -n N gives it more tokens");
  return true;
}

bool answer_printer::print_all(const std::vector<answer_piece>& pieces) {
  for (const answer_piece& one : pieces) {
    if (!printed_) return false;
    if (one.of == part::reasoning)
      print_reasoning(one);
    else if (one.of == part::tool_call)
      printed_ = print(on_terminal_ ? out_.painted(yellow, written(one)) : written(one));
    else
      print_content(one.text);
  }
  return printed_.has_value();
}

void answer_printer::print_reasoning(const answer_piece& one) {
  if (one.what != answer_piece::kind::text) thinks_ = one.what == answer_piece::kind::begins;
  skips_blanks_ = !shows_reasoning_ || !on_terminal_;
  if (!shows_reasoning_) return;
  if (on_terminal_) {
    printed_ = print(out_.painted(dim, written(one)));
    return;
  }
  out_.raw(out_.painted(dim, text::printable_lines(written(one))));
  if (one.what == answer_piece::kind::ends) out_.raw("\n");
}

void answer_printer::print_content(std::string_view text) {
  if (skips_blanks_) {
    text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
    skips_blanks_ = text.empty();
  }
  if (!text.empty()) printed_ = print(text);
}

}  // namespace bitnet::host

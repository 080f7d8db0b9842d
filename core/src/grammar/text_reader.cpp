#include "grammar/text_reader.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "base/utf8.hpp"
#include "text/printable.hpp"

namespace bitnet::grammar {
namespace {

bool is_of_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_';
}

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::string shown_name(const std::string& name) {
  constexpr std::size_t longest = 48;  // bytes
  return text::printable(name, longest);
}

failure wrong_at(text_position where, const std::string& what, bitnet_status status) {
  return {status,
          fmt::format("the grammar, line {}, column {}: {}", where.line, where.column, what)};
}

void text_reader::wrong(text_position where, const std::string& what, bitnet_status status) {
  if (!trouble_) trouble_ = wrong_at(where, what, status);
  at_ = text_.size();
}

char32_t text_reader::take() {
  if (at_end()) return 0;
  const utf8_char c = first_utf8_char(text_.substr(at_));
  at_ += c.length;
  if (c.code_point == '\n') {
    ++where_.line;
    where_.column = 1;
  } else {
    ++where_.column;
  }
  return c.code_point;
}

bool text_reader::skip(char c) {
  if (!at(c)) return false;
  take();
  return true;
}

bool text_reader::skip(std::string_view word) {
  if (!text_.substr(at_).starts_with(word)) return false;
  for (std::size_t i = 0; i < word.size(); ++i) take();
  return true;
}

void text_reader::skip_blank(bool line_ends) {
  while (!at_end()) {
    if (at('#')) {
      while (!at_line_end()) take();
    } else if (at(' ') || at('\t') || (line_ends && (at('\n') || at('\r')))) {
      take();
    } else {
      return;
    }
  }
}

std::string text_reader::take_name() {
  std::string name;
  while (!at_end() && is_of_name(text_[at_])) name += static_cast<char>(take());
  return name;
}

std::optional<uint32_t> text_reader::take_number() {
  if (at_end() || text_[at_] < '0' || text_[at_] > '9') return std::nullopt;
  constexpr uint64_t most_number = 999'999'999;
  uint64_t number = 0;
  while (!at_end() && text_[at_] >= '0' && text_[at_] <= '9')
    number = std::min<uint64_t>(number * 10 + (take() - U'0'), most_number);
  return static_cast<uint32_t>(number);
}

char32_t text_reader::take_hex(int digits, text_position begin) {
  char32_t value = 0;
  for (int i = 0; i < digits; ++i) {
    const int digit = at_end() ? -1 : hex_value(text_[at_]);
    if (digit < 0) {
      wrong(fmt::format("expected {} hexadecimal digits, found {} behind {} of them", digits,
                        found(), i));
      return 0;
    }
    value = value * 16 + static_cast<char32_t>(digit);
    take();
  }
  if (value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF))
    wrong(begin, fmt::format("expected a character of Unicode, found U+{:04X}, which is none",
                             static_cast<uint32_t>(value)));
  return value;
}

char32_t text_reader::take_escape(bool in_class) {
  const text_position begin = where_;
  take();  // the backslash
  if (skip('n')) return '\n';
  if (skip('t')) return '\t';
  if (skip('r')) return '\r';
  for (const char c : {'\\', '"', '[', ']'})
    if (skip(c)) return static_cast<char32_t>(c);
  for (const char c : {'-', '^'})
    if (in_class && skip(c)) return static_cast<char32_t>(c);
  if (skip('x')) return take_hex(2, begin);
  if (skip('u')) return take_hex(4, begin);
  if (skip('U')) return take_hex(8, begin);
  wrong(begin,
        fmt::format("expected n, t, r, x, u, U, \\, \", [ or ] behind a backslash, found {}; "
                    "write \\\\ for a backslash",
                    found()));
  return 0;
}

std::string text_reader::found() const {
  if (at_end()) return "the end of the grammar";
  if (at_line_end()) return "the end of the line";
  const utf8_char c = first_utf8_char(text_.substr(at_));
  return fmt::format("'{}'", text::printable(text_.substr(at_, c.length)));
}

}  // namespace bitnet::grammar

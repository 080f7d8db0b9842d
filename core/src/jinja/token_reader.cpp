#include "jinja/token_reader.hpp"

#include <fmt/format.h>

namespace bitnet::jinja {

token token_reader::take() {
  token one = now();
  if (!trouble_ && at_ + 1 < tokens_.size()) ++at_;
  return one;
}

bool token_reader::skip_sign(std::string_view s) {
  if (!at_sign(s)) return false;
  take();
  return true;
}

bool token_reader::skip_word(std::string_view s) {
  if (!at_word(s)) return false;
  take();
  return true;
}

void token_reader::expect_sign(std::string_view s) {
  if (!skip_sign(s)) wrong(fmt::format("expected '{}', found {}", s, describe(now())));
}

void token_reader::expect(kind k, std::string_view shown) {
  if (at(k))
    take();
  else
    wrong(fmt::format("expected '{}', found {}", shown, describe(now())));
}

std::string token_reader::expect_name() {
  if (at(kind::name)) return take().content;
  wrong(fmt::format("expected a name, found {}", describe(now())));
  return {};
}

std::string token_reader::describe(const token& t) {
  switch (t.what) {
    case kind::variable_end:
      return "'}}'";
    case kind::block_end:
      return "'%}'";
    case kind::end:
      return "the end of the template";
    case kind::text:
      return "a text";
    case kind::data:
    case kind::variable_begin:
    case kind::block_begin:
      return "text of the template";
    default:
      return fmt::format("'{}'", t.content.substr(0, longest_quote));
  }
}

void token_reader::wrong_at(uint32_t line, const std::string& message) {
  if (!trouble_) trouble_ = failure{BITNET_BAD_DATA, fmt::format("line {}: {}", line, message)};
}

void token_reader::too_deep() {
  wrong(fmt::format("expressions or blocks lie more than {} deep in each other", deepest_syntax));
}

}  // namespace bitnet::jinja

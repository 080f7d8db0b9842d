#include "tokenizer/blanks.hpp"

namespace bitnet::tokenizer {

std::string with_marked_blanks(std::string_view text, bool space_before) {
  std::string out;
  out.reserve(text.size() + text.size() / 2 + blank.size());
  if (space_before) out += blank;
  for (const char c : text) {
    if (c == ' ') {
      out += blank;
    } else {
      out += c;
    }
  }
  return out;
}

std::string with_plain_blanks(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const bool is_blank = text.substr(i).starts_with(blank);
    out += is_blank ? ' ' : text[i];
    i += is_blank ? blank.size() : 1;
  }
  return out;
}

}  // namespace bitnet::tokenizer

#include "tokenizer/utf8.hpp"

#include "text/printable.hpp"
#include "tokenizer/tokenizer.hpp"

namespace bitnet::tokenizer {

std::string hex_byte(unsigned char byte) {
  constexpr char digits[] = "0123456789abcdef";
  return {'0', 'x', digits[byte >> 4], digits[byte & 15]};
}

std::string in_quotes(std::string_view bytes) {
  constexpr size_t longest = 48;
  const std::string out = "\"" + text::printable_ascii(bytes.substr(0, longest), "\"\\");
  return out + (bytes.size() > longest ? "\"..." : "\"");
}

namespace {
constexpr std::string_view replacement = "\xEF\xBF\xBD";
}

std::string utf8_stream::push(std::string_view bytes) {
  pending_ += bytes;
  std::string out;
  size_t i = 0;
  while (i < pending_.size()) {
    const std::string_view rest = std::string_view(pending_).substr(i);
    const utf8_char c = first_utf8_char(rest);
    if (c.state == utf8_state::truncated) break;
    out += c.state == utf8_state::complete ? rest.substr(0, c.length) : replacement;
    i += c.length;
  }
  pending_.erase(0, i);
  return out;
}

std::string utf8_stream::finish() {
  const bool incomplete = !pending_.empty();
  pending_.clear();
  return incomplete ? std::string(replacement) : std::string();
}

}  // namespace bitnet::tokenizer

#include "text/printable.hpp"

#include "text/utf8.hpp"

namespace bitnet::text {

namespace {

bool is_obeyed(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first < 0x20 || first == 0x7F;
  // U+0080 to U+009F: some terminals interpret them as escape sequences.
  if (first == 0xC2) return static_cast<unsigned char>(character[1]) < 0xA0;
  // U+200E, U+200F, U+2028 to U+202E, U+2066 to U+2069: marks of direction, and line ends.
  if (character.size() != 3 || first != 0xE2) return false;
  const auto second = static_cast<unsigned char>(character[1]);
  const auto third = static_cast<unsigned char>(character[2]);
  if (second == 0x80) return third == 0x8E || third == 0x8F || (third >= 0xA8 && third <= 0xAE);
  return second == 0x81 && third >= 0xA6 && third <= 0xA9;
}

std::string hex(char c) {
  constexpr std::string_view digits = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(c);
  return {'\\', 'x', digits[byte >> 4U], digits[byte & 15U]};
}

std::string escaped(std::string_view bytes) {
  if (bytes == "\n") return "\\n";
  if (bytes == "\r") return "\\r";
  if (bytes == "\t") return "\\t";
  std::string out;
  for (const char c : bytes) out += hex(c);
  return out;
}

}  // namespace

std::string printable(std::string_view text, std::size_t limit) {
  std::string out;
  while (!text.empty()) {
    const utf8_char first = first_utf8_char(text);
    const bool whole = first.state == utf8_state::complete;
    const std::string_view character = text.substr(0, whole ? first.length : 1);
    const bool plain = whole && !is_obeyed(character);
    const std::string shown = plain ? std::string(character) : escaped(character);
    if (out.size() + shown.size() > limit) return out + "...";
    out += shown;
    text.remove_prefix(character.size());
  }
  return out;
}

std::string printable_lines(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = text.find_first_of("\n\t");
    out += printable(text.substr(0, end));
    if (end == std::string_view::npos) break;
    out += text[end];
    text.remove_prefix(end + 1);
  }
  return out;
}

std::string printable_ascii(std::string_view text, std::string_view also) {
  std::string out;
  for (const char c : text) {
    if (c >= 0x20 && c < 0x7F && !also.contains(c))
      out += c;
    else
      out += hex(c);
  }
  return out;
}

}  // namespace bitnet::text

#include "text/utf8.hpp"

namespace bitnet::text {

utf8_char first_utf8_char(std::string_view bytes) {
  const auto at = [&](size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned char lead = at(0);
  if (lead < 0x80) return {utf8_state::complete, 1, lead};
  if (lead < 0xC2 || lead > 0xF4) return {utf8_state::broken, 1, 0};
  const uint8_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  // Only the bounds of the second byte depend on the first: they exclude overlong forms and
  // surrogates.
  unsigned char low = 0x80;
  unsigned char high = 0xBF;
  if (lead == 0xE0) low = 0xA0;
  if (lead == 0xED) high = 0x9F;
  if (lead == 0xF0) low = 0x90;
  if (lead == 0xF4) high = 0x8F;
  char32_t code_point = lead & (0x7Fu >> length);
  for (uint8_t i = 1; i < length; ++i) {
    if (i == bytes.size()) return {utf8_state::truncated, i, 0};
    if (at(i) < low || at(i) > high) return {utf8_state::broken, i, 0};
    code_point = code_point << 6 | (at(i) & 0x3Fu);
    low = 0x80;
    high = 0xBF;
  }
  return {utf8_state::complete, length, code_point};
}

std::optional<size_t> first_invalid_utf8(std::string_view bytes) {
  for (size_t i = 0; i < bytes.size();) {
    const utf8_char c = first_utf8_char(bytes.substr(i));
    if (c.state != utf8_state::complete) return i;
    i += c.length;
  }
  return std::nullopt;
}

void append_utf8(std::string& out, char32_t c) {
  const auto put = [&](char32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | c >> 6);
    put(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    put(0xE0 | c >> 12);
    put(0x80 | (c >> 6 & 0x3F));
    put(0x80 | (c & 0x3F));
  } else {
    put(0xF0 | c >> 18);
    put(0x80 | (c >> 12 & 0x3F));
    put(0x80 | (c >> 6 & 0x3F));
    put(0x80 | (c & 0x3F));
  }
}

}  // namespace bitnet::text

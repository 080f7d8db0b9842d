#include "tokenizer/byte_table.hpp"

#include <array>
#include <cstdint>

#include "tokenizer/utf8.hpp"

namespace bitnet::tokenizer {
namespace {

struct byte_table {
  static constexpr char32_t end = 0x100 + 68;  // one past the last character in use
  std::array<std::string, 256> text;
  std::array<int16_t, end> byte;  // by code point; -1 = stands for no byte

  byte_table() {
    byte.fill(-1);
    char32_t next = 0x100;
    for (int b = 0; b < 256; ++b) {
      const bool itself = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
      const char32_t c = itself ? static_cast<char32_t>(b) : next++;
      append_utf8(text[b], c);
      byte[c] = static_cast<int16_t>(b);
    }
  }
};

const byte_table& all_bytes() {
  static const byte_table t;
  return t;
}

}  // namespace

std::string_view byte_to_text(unsigned char byte) {
  return all_bytes().text[byte];
}

std::optional<std::string> text_to_bytes(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const utf8_char c = first_utf8_char(text.substr(i));
    if (c.state != utf8_state::complete || c.code_point >= byte_table::end) return std::nullopt;
    const int16_t byte = all_bytes().byte[c.code_point];
    if (byte < 0) return std::nullopt;
    out.push_back(static_cast<char>(byte));
    i += c.length;
  }
  return out;
}

}  // namespace bitnet::tokenizer

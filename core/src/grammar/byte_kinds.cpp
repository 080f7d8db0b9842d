#include "grammar/byte_kinds.hpp"

namespace bitnet::grammar {

std::size_t find_byte_kinds(std::span<const character_class> classes,
                            std::array<uint8_t, 256>& of) {
  // Where a kind begins. Bytes above ASCII as in UTF-8 without overlong forms and surrogates: table
  // 3-7 of the Unicode standard.
  std::array<bool, 256> begins{};
  for (const int byte :
       {0x00, 0x80, 0x90, 0xA0, 0xC0, 0xC2, 0xE0, 0xE1, 0xED, 0xEE, 0xF0, 0xF1, 0xF4, 0xF5})
    begins[static_cast<std::size_t>(byte)] = true;
  bool is_split = false;  // some class separates characters above ASCII
  const auto boundary = [&](char32_t at) {
    if (at < 0x80)
      begins[at] = true;
    else if (at != 0x80 && at != 0xD800 && at != 0xE000 && at != 0x110000)
      is_split = true;
  };
  for (const character_class& one : classes) {
    for (const code_range& r : one) {
      boundary(r.first);
      boundary(r.last + 1);
    }
  }
  std::size_t kind = 0;
  for (std::size_t byte = 0; byte < of.size(); ++byte) {
    if (byte > 0 && (begins[byte] || (is_split && byte >= 0x80))) ++kind;
    of[byte] = static_cast<uint8_t>(kind);
  }
  return kind + 1;
}

}  // namespace bitnet::grammar

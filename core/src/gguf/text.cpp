#include "gguf/text.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

namespace bitnet::gguf {

std::string quote(std::string_view untrusted) {
  constexpr size_t longest = 80;
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out = "'";
  for (const char c : untrusted.substr(0, longest)) {
    const auto byte = static_cast<uint8_t>(c);
    if (byte >= 0x20 && byte < 0x7f)
      out += c;
    else
      out.append("\\x").append(1, digits[byte >> 4]).append(1, digits[byte & 15]);
  }
  if (untrusted.size() > longest) out += "...";
  return out + "'";
}

bool is_utf8(std::string_view bytes) {
  // Smallest code point that needs one, two or three continuation bytes.
  constexpr std::array<uint32_t, 4> smallest = {0, 0x80, 0x800, 0x10000};
  for (size_t i = 0; i < bytes.size();) {
    const auto lead = static_cast<uint8_t>(bytes[i++]);
    if (lead < 0x80) continue;
    const size_t more = lead < 0xc0 ? 0 : lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : lead < 0xf8 ? 3 : 0;
    if (more == 0 || bytes.size() - i < more) return false;
    uint32_t point = lead & (0x3fU >> more);
    for (size_t j = 0; j < more; ++j) {
      const auto next = static_cast<uint8_t>(bytes[i++]);
      if ((next & 0xc0U) != 0x80) return false;
      point = point << 6 | (next & 0x3fU);
    }
    if (point < smallest[more] || point > 0x10ffff || (point >= 0xd800 && point < 0xe000))
      return false;
  }
  return true;
}

}  // namespace bitnet::gguf

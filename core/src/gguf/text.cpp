#include "gguf/text.hpp"

#include <cstdint>

#include "base/utf8.hpp"

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
  return !first_invalid_utf8(bytes);
}

}  // namespace bitnet::gguf

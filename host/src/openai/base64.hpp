#pragma once
// Base64 of RFC 4648, with padding.

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>

namespace bitnet::host::openai {

[[nodiscard]] inline std::string base64(std::span<const std::byte> bytes) {
  constexpr char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t n = std::min<std::size_t>(3, bytes.size() - i);
    unsigned group = 0;  // 24 bits, zero past the end
    for (std::size_t k = 0; k < 3; ++k)
      group = group << 8U | (k < n ? std::to_integer<unsigned>(bytes[i + k]) : 0U);
    for (std::size_t k = 0; k < 4; ++k) out += k <= n ? digits[group >> (18 - 6 * k) & 63U] : '=';
  }
  return out;
}

}  // namespace bitnet::host::openai

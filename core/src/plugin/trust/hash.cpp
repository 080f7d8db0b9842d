#include "plugin/trust/hash.hpp"

#include <fmt/core.h>

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <new>

namespace bitnet::plugin {

std::string hexadecimal(std::span<const std::byte> bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out;
  out.reserve(bytes.size() * 2);
  for (const std::byte b : bytes) {
    out += digits[std::to_integer<unsigned>(b) >> 4];
    out += digits[std::to_integer<unsigned>(b) & 15];
  }
  return out;
}

std::string sha256_of(std::span<const std::byte> bytes) {
  std::array<std::byte, 32> digest{};
  // OpenSSL fails here only if memory is exhausted, since SHA-256 is built in.
  if (EVP_Digest(bytes.data(), bytes.size(), reinterpret_cast<unsigned char*>(digest.data()),
                 nullptr, EVP_sha256(), nullptr) != 1)
    throw std::bad_alloc();
  return hexadecimal(digest);
}

bool is_sha256(std::string_view text) {
  return text.size() == 64 && std::ranges::all_of(text, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

void examine_hash(std::span<const std::byte> bytes, const std::string& expected, findings& found) {
  const std::string is = sha256_of(bytes);
  if (is == expected)
    found.ok("hash", is);
  else
    found.error("hash", code::trust_hash,
                fmt::format("has the SHA-256 {}, the manifest says {}", is, expected));
}

}  // namespace bitnet::plugin

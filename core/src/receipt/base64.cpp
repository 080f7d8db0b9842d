#include "receipt/base64.hpp"

#include <openssl/evp.h>

#include <algorithm>
#include <limits>

namespace bitnet::receipt {
namespace {

// OpenSSL uses int for sizes.
constexpr std::size_t longest_text = std::numeric_limits<int>::max() / 2;

}  // namespace

std::string to_base64(std::string_view bytes) {
  std::string out((bytes.size() + 2) / 3 * 4 + 1, '\0');  // OpenSSL appends a NUL
  const int n = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                                reinterpret_cast<const unsigned char*>(bytes.data()),
                                static_cast<int>(bytes.size()));
  out.resize(static_cast<std::size_t>(n));
  return out;
}

std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % 4 != 0 || text.size() > longest_text) return std::nullopt;
  if (text.empty()) return std::string();
  std::string out(text.size() / 4 * 3, '\0');
  if (EVP_DecodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                      reinterpret_cast<const unsigned char*>(text.data()),
                      static_cast<int>(text.size())) < 0)
    return std::nullopt;
  // OpenSSL decodes padding as zeros, and ignores white space at both ends.
  const auto padding = std::ranges::count(text.substr(text.size() - 2), '=');
  out.resize(out.size() - static_cast<std::size_t>(padding));
  if (to_base64(out) != text) return std::nullopt;
  return out;
}

}  // namespace bitnet::receipt

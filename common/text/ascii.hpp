#pragma once
// Classes of ASCII characters. Unlike the functions of <cctype> they do not depend on the locale.
// docs/reference/environment.md#locales

#include <string>

namespace bitnet {

[[nodiscard]] constexpr char lower_ascii(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

[[nodiscard]] inline std::string lower_ascii(std::string text) {
  for (char& c : text) c = lower_ascii(c);
  return text;
}

[[nodiscard]] constexpr char upper_ascii(char c) {
  return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
}

// As isspace in the "C" locale.
[[nodiscard]] constexpr bool is_space_ascii(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

[[nodiscard]] constexpr bool is_hex_ascii(char c) {
  return (c >= '0' && c <= '9') || (lower_ascii(c) >= 'a' && lower_ascii(c) <= 'f');
}

}  // namespace bitnet

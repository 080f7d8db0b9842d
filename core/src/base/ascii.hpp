#pragma once
// Letters of ASCII, whatever the locale.

#include <string>

namespace bitnet {

[[nodiscard]] constexpr char lower_ascii(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

[[nodiscard]] inline std::string lower_ascii(std::string text) {
  for (char& c : text) c = lower_ascii(c);
  return text;
}

}  // namespace bitnet

#pragma once
// Converts the library's floats to JSON numbers.

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <string>

namespace bitnet::host::openai {

// Converts a float's shortest decimal to double, so that JSON prints the same digits. JSON has no
// infinity: like OpenAI, it uses -9999 for an impossible token.
[[nodiscard]] inline double shortest(float value) {
  constexpr double never = -9999;
  if (!std::isfinite(value)) return never;
  const std::string text = fmt::format("{}", value);
  double out = 0;
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

}  // namespace bitnet::host::openai

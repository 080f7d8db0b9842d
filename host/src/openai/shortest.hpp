#pragma once
// Numbers of the library as numbers of JSON.

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <string>

namespace bitnet::host::openai {

// A float's shortest decimal as a double, whose own shortest decimal is then the same. JSON has no
// infinity: OpenAI gives -9999 for what cannot come.
[[nodiscard]] inline double shortest(float value) {
  constexpr double never = -9999;
  if (!std::isfinite(value)) return never;
  const std::string text = fmt::format("{}", value);
  double out = 0;
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

}  // namespace bitnet::host::openai

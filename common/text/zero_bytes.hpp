#pragma once
// nlohmann-json takes a zero byte for the end of a text and ignores the rest. Valid JSON has none,
// so readers of untrusted JSON reject it first.

#include <cstddef>
#include <optional>
#include <string_view>

namespace bitnet::text {

// Offset of the first zero byte.
[[nodiscard]] inline std::optional<std::size_t> zero_byte(std::string_view text) {
  const std::size_t found = text.find('\0');
  return found == std::string_view::npos ? std::nullopt : std::optional(found);
}

}  // namespace bitnet::text

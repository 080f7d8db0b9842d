#pragma once
// nlohmann-json takes a zero byte for the end of a text, and leaves what stands behind it unread.
// JSON has none anywhere, so readers of what comes from outside refuse it first.

#include <cstddef>
#include <optional>
#include <string_view>

namespace bitnet::text {

// The place of the first one, from 0 on.
[[nodiscard]] inline std::optional<std::size_t> zero_byte(std::string_view text) {
  const std::size_t found = text.find('\0');
  return found == std::string_view::npos ? std::nullopt : std::optional(found);
}

}  // namespace bitnet::text

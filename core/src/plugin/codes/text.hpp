#pragma once
// Escapes untrusted text for messages, terminals and logs.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "text/printable.hpp"

namespace bitnet::plugin {

// Like text::printable, with a short limit.
[[nodiscard]] inline std::string printable(std::string_view text, std::size_t limit = 200) {
  return text::printable(text, limit);
}

// The text of a fixed array that may lack its NUL.
template <std::size_t N>
[[nodiscard]] std::string printable_array(const char (&text)[N]) {
  const std::string_view all(text, N);
  return printable(all.substr(0, all.find('\0')), N);
}

// [a-z0-9][a-z0-9._-]{0,31}
[[nodiscard]] bool is_backend_name(std::string_view text);

// "a, b, c"
[[nodiscard]] std::string join(const std::vector<std::string>& items, std::string_view separator);

}  // namespace bitnet::plugin

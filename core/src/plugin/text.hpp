#pragma once
// Text from outside that ends in a message, a terminal or a log.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace bitnet::plugin {

// At most `limit` bytes; control characters and bytes that are not UTF-8 become '?', so that no
// plugin, manifest or request can send escape sequences to a terminal.
[[nodiscard]] std::string printable(std::string_view text, std::size_t limit = 200);

// A fixed array that should be NUL terminated but need not be.
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

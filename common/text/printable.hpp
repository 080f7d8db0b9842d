#pragma once
// Text from outside that ends in a message, a table or a log: of model files, manifests, plugins,
// requests. The one function that makes it safe to show.
//
// Escaped  control characters, those that turn the direction of writing around, and bytes that are
//          no UTF-8: \n, \r, \t, else \xNN for each byte. No terminal obeys what is left, and it
//          is valid UTF-8. Text that was escaped once stays as it is.

#include <cstddef>
#include <string>
#include <string_view>

namespace bitnet::text {

inline constexpr std::size_t no_limit = static_cast<std::size_t>(-1);

// On one line; at most `limit` bytes, then "...".
[[nodiscard]] std::string printable(std::string_view text, std::size_t limit = no_limit);

// The same for several lines: line ends and tabs stay.
[[nodiscard]] std::string printable_lines(std::string_view text);

// The same with everything but ASCII escaped, and the characters of `also`.
[[nodiscard]] std::string printable_ascii(std::string_view text, std::string_view also = {});

}  // namespace bitnet::text

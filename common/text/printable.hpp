#pragma once
// Escapes untrusted text for messages, tables and logs: text from model files, manifests, plugins
// and requests.
//
// Escaped  control characters, those that turn the direction of writing around, and bytes that are
//          no UTF-8: \n, \r, \t, else \xNN for each byte. No terminal obeys what is left, and it
//          is valid UTF-8. Text that was escaped once stays as it is.

#include <cstddef>
#include <string>
#include <string_view>

namespace bitnet::text {

inline constexpr std::size_t no_limit = static_cast<std::size_t>(-1);

// Escapes to one line; cuts after `limit` bytes and appends "...".
[[nodiscard]] std::string printable(std::string_view text, std::size_t limit = no_limit);

// The same for several lines: line ends and tabs stay.
[[nodiscard]] std::string printable_lines(std::string_view text);

// The same with everything but ASCII escaped, and the characters of `also`.
[[nodiscard]] std::string printable_ascii(std::string_view text, std::string_view also = {});

}  // namespace bitnet::text

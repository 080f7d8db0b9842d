#pragma once
// Base64 of RFC 4648, section 4: with padding, in one line.

#include <optional>
#include <string>
#include <string_view>

namespace bitnet::receipt {

[[nodiscard]] std::string to_base64(std::string_view bytes);
// nullopt for text that to_base64() does not write: other characters, missing padding, bits behind
// the last byte.
[[nodiscard]] std::optional<std::string> from_base64(std::string_view text);

}  // namespace bitnet::receipt

#pragma once
// Formats bytes of a text for messages.

#include <string>
#include <string_view>

#include "base/utf8.hpp"

namespace bitnet::tokenizer {

// In double quotes, cut to 48 bytes, with everything but printable ASCII as \xHH.
[[nodiscard]] std::string in_quotes(std::string_view bytes);
[[nodiscard]] std::string hex_byte(unsigned char byte);  // "0x0a"

}  // namespace bitnet::tokenizer

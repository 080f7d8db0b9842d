#pragma once
// UTF-8 by the Unicode standard, table 3-7: no overlong forms, no surrogates, nothing past
// U+10FFFF.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace bitnet::text {

enum class utf8_state : uint8_t { complete, truncated, broken };

struct utf8_char {
  utf8_state state;
  uint8_t length;       // bytes; of an invalid character: its longest valid beginning, >= 1
  char32_t code_point;  // 0 if the character is invalid
};

// Decodes the character at bytes[0]; `bytes` is not empty.
[[nodiscard]] utf8_char first_utf8_char(std::string_view bytes);

// Offset of the first byte that belongs to no valid character.
[[nodiscard]] std::optional<size_t> first_invalid_utf8(std::string_view bytes);

void append_utf8(std::string& out, char32_t code_point);

}  // namespace bitnet::text

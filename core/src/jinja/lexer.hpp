#pragma once
// Splits a template into tokens. White space is trimmed as usual for chat templates: trim_blocks
// and lstrip_blocks are on, and one newline at the end is removed.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace bitnet::jinja {

struct token {
  enum class kind : uint8_t {
    data,
    variable_begin,
    variable_end,
    block_begin,
    block_end,
    name,
    text,
    integer,
    real,
    sign,  // an operator or a bracket
    end
  };
  kind what;
  std::string content;
  uint32_t line;
};

// Longest first.
inline constexpr std::array<std::string_view, 26> all_signs = {
    "**", "//", "==", "!=", "<=", ">=", "+", "-", "*", "/", "%", "~", "<",
    ">",  "=",  "(",  ")",  "[",  "]",  "{", "}", ",", ":", ".", "|", ";"};

// Published templates have some thousands. The parser takes about 200 bytes per token.
constexpr std::size_t most_tokens = 200'000;

// The last token is `end`. Errors name the line.
[[nodiscard]] result<std::vector<token>> split_template(std::string_view source);

}  // namespace bitnet::jinja

#pragma once
// A template's text as tokens, with white space cut as chat templates are rendered everywhere:
// trim_blocks and lstrip_blocks are on, one newline at the end goes.

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

// A published template has some thousands. What is parsed takes some 200 bytes for each.
constexpr std::size_t most_tokens = 200'000;

// Ends with a token `end`. Errors name the line.
[[nodiscard]] result<std::vector<token>> split_template(std::string_view source);

}  // namespace bitnet::jinja

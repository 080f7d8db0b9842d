#pragma once
// Parses a template into trees. Limits apply, since model files may be hostile.

#include <string_view>

#include "base/result.hpp"
#include "jinja/syntax.hpp"

namespace bitnet::jinja {

// The published templates have up to 20 KB, and nest up to 8 deep.
constexpr std::size_t longest_template = std::size_t{1} << 20U;  // bytes

[[nodiscard]] result<body> parse_template(std::string_view source);

}  // namespace bitnet::jinja

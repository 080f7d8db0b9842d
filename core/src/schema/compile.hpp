#pragma once
// JSON Schema as rules of a grammar: docs/reference/json-schema.md.
//
// Errors  BITNET_INVALID_ARGUMENT for a text that is no schema, or one by which no value is valid;
//         BITNET_UNSUPPORTED for what cannot be followed exactly, and past a bound of limits.hpp.
//         A message names the place by a JSON pointer.

#include <string_view>

#include "base/result.hpp"
#include "grammar/rules.hpp"

namespace bitnet::schema {

[[nodiscard]] result<grammar::rule_set> compile(std::string_view text);

}  // namespace bitnet::schema

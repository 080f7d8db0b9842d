#pragma once
// JSON Schema as rules of a grammar: docs/reference/json-schema.md.
//
// Errors  BITNET_INVALID_ARGUMENT if the text is no schema, or no value is valid by it;
//         BITNET_UNSUPPORTED if a keyword cannot be followed exactly, or a bound of limits.hpp is
//         passed. A message names the place by a JSON pointer.

#include <string_view>

#include "base/result.hpp"
#include "grammar/rules.hpp"
#include "schema/notation.hpp"

namespace bitnet::schema {

[[nodiscard]] result<grammar::rule_set> compile(std::string_view text);

// Compiles the objects that are valid by the schema, written as arguments of a call. `work`: steps
// that other schemas of the same request took, which share one bound; adds those of this one.
// BITNET_UNSUPPORTED also if the notation cannot write what the schema asks for.
[[nodiscard]] result<grammar::rule_set> compile_arguments(std::string_view text,
                                                          const notation& how, uint64_t& work);

}  // namespace bitnet::schema

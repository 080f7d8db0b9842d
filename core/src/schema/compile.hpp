#pragma once
// JSON Schema as rules of a grammar: docs/reference/json-schema.md.
//
// Errors  BITNET_INVALID_ARGUMENT for a text that is no schema, or one by which no value is valid;
//         BITNET_UNSUPPORTED for what cannot be followed exactly, and past a bound of limits.hpp.
//         A message names the place by a JSON pointer.

#include <string_view>

#include "base/result.hpp"
#include "grammar/rules.hpp"
#include "schema/notation.hpp"

namespace bitnet::schema {

[[nodiscard]] result<grammar::rule_set> compile(std::string_view text);

// The objects that are valid by the schema, as the arguments of a call are written. `work`: steps
// that were spent on other schemas of the same request, which share one bound; those of this one
// are added. BITNET_UNSUPPORTED also where the notation cannot write what the schema asks for.
[[nodiscard]] result<grammar::rule_set> compile_arguments(std::string_view text,
                                                          const notation& how, uint64_t& work);

}  // namespace bitnet::schema

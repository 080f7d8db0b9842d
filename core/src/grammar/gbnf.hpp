#pragma once
// GBNF, the notation of grammars that llama.cpp made known: docs/reference/grammars.md.
//
// Errors  BITNET_INVALID_ARGUMENT with line and column, what was expected and found;
//         BITNET_UNSUPPORTED where a bound of rules.hpp is passed.

#include <string_view>

#include "base/result.hpp"
#include "grammar/rules.hpp"

namespace bitnet::grammar {

[[nodiscard]] result<rule_set> parse_gbnf(std::string_view text);

}  // namespace bitnet::grammar

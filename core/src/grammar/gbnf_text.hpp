#pragma once
// Writes rules as GBNF, which parse_gbnf() reads again with the same meaning.

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "grammar/rules.hpp"

namespace bitnet::grammar {

// One rule on each line. The root is called `name`, the others `name`-0, `name`-1 and so on, so
// that the rules of several grammars can stand in one text. `name` has letters, digits, '-' and
// '_'.
// BITNET_UNSUPPORTED if the text would be longer than `longest_grammar`.
[[nodiscard]] result<std::string> as_gbnf(const rule_set& of, std::string_view name);

}  // namespace bitnet::grammar

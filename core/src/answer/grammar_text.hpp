#pragma once
// Builds the GBNF of dialects.

#include <string>
#include <string_view>

#include "answer/dialect.hpp"

namespace bitnet::answer {

// "text" as a GBNF literal; ASCII, control characters escaped.
std::string literal(std::string_view text);

// Rules with `rule` for any text up to and including the first `tag`, which is ASCII.
std::string until_rules(std::string_view rule, std::string_view tag);

// Rules "object" and "value" for JSON. At most one blank or line end may stand between tokens, so
// that a model cannot generate blanks endlessly.
std::string_view json_rules();

// The rule "arguments": key=value of Python, separated by commas.
std::string_view python_rules();

// The rule "call" and the rules of bound arguments: `begin` NAME `middle` ARGUMENTS `end`, all
// literal texts. `any` is the rule for the arguments of an unbound tool.
std::string call_rules(const call_choice& which, std::string_view begin, std::string_view middle,
                       std::string_view end, std::string_view any);

}  // namespace bitnet::answer

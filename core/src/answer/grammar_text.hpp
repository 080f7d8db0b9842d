#pragma once
// Pieces of GBNF that the grammars of dialects are made of.

#include <string>
#include <string_view>

#include "answer/dialect.hpp"

namespace bitnet::answer {

// "text" as a GBNF literal; ASCII, control characters escaped.
std::string literal(std::string_view text);

// Rules of which `rule` is any text up to and with the first `tag`, which is ASCII.
std::string until_rules(std::string_view rule, std::string_view tag);

// Rules of which "object" is any JSON object, and "value" any JSON value, with at most one blank or
// line end between their parts, so that a model cannot write blanks for ever.
std::string_view json_rules();

// Rules of which "arguments" are key=value of Python, separated by commas.
std::string_view python_rules();

// The rule "call" and those of bound arguments: `begin` NAME `middle` ARGUMENTS `end`. `any` is the
// rule of the arguments of a tool that is not bound. Texts are literal.
std::string call_rules(const call_choice& which, std::string_view begin, std::string_view middle,
                       std::string_view end, std::string_view any);

}  // namespace bitnet::answer

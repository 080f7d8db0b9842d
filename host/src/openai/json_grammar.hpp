#pragma once
// The grammar of response_format json_object.

#include <string_view>

namespace bitnet::host::openai {

// docs/how-to/answer-in-a-form/json.gbnf, without its comment; host.openai compares them.
inline constexpr std::string_view json_grammar = R"gbnf(root   ::= object
value  ::= object | array | string | number | "true" | "false" | "null"
object ::= "{" blank (member ("," blank member)*)? blank "}"
member ::= string ":" blank value
array  ::= "[" blank (value ("," blank value)*)? blank "]"
string ::= "\"" ([^"\\\x00-\x1f] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4}))* "\""
number ::= "-"? ("0" | [1-9] [0-9]{0,15}) ("." [0-9]{1,15})? ([eE] [-+]? [0-9]{1,3})?
blank  ::= [ \n]{0,4}
)gbnf";

}  // namespace bitnet::host::openai

#pragma once
// Binds the arguments of demanded calls to the schemas of their tools.

#include <string>
#include <vector>

#include "answer/dialect.hpp"
#include "base/result.hpp"

namespace bitnet::answer {

struct bound_calls {
  // GBNF rules of which "arguments-N" is the arguments of the tool N; "" of one that is not bound.
  std::vector<std::string> rules;
  // A line for each tool that has a schema and is not bound, with the place and the reason:
  // "NAME: tools[1].function.parameters#/properties/a/not: not is not supported".
  std::string unbound;
};

// Of the tools of `which` in the form of `dialect`. All schemas together have the bounds of one
// grammar and of one schema's work; what passes them is not bound.
// Errors  as schema::compile() has them, with the path, for a tool with strict: true.
result<bound_calls> bind_arguments(const dialect& form, const call_choice& which);

}  // namespace bitnet::answer

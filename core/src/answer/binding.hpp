#pragma once
// Makes grammar rules from the parameter schemas of tools that must be called.

#include <string>
#include <vector>

#include "answer/dialect.hpp"
#include "base/result.hpp"

namespace bitnet::answer {

struct bound_calls {
  // One per tool: GBNF rules with "arguments-N" for the arguments of tool N; "": it is not bound.
  std::vector<std::string> rules;
  // One line per tool whose schema could not be bound, with place and reason: "NAME:
  // tools[1].function.parameters#/properties/a/not: not is not supported".
  std::string unbound;
};

// Binds the tools of `which` in the notation of `d`. The limits of one grammar and of one schema
// apply to all schemas together; a tool that exceeds them is not bound.
// Errors  those of schema::compile(), with the path, for a tool with strict: true.
result<bound_calls> bind_arguments(const dialect& d, const call_choice& which);

}  // namespace bitnet::answer

#pragma once
// Readers and writers of the call notations that dialects use.

#include "answer/dialect.hpp"

namespace bitnet::answer {

// {"name": NAME, "arguments": OBJECT}, or "parameters" in place of "arguments", also within
// {"type": "function", "function": ...}; or a list of these. The arguments may be a JSON text in a
// string, or missing.
calls_or_reason read_json_calls(std::string_view body);

// NAME(key=value, ...), on one or several lines, or a list of calls in brackets. Values are Python
// literals; a value without a key belongs to the next parameter in the tool's order.
calls_or_reason read_python_calls(std::string_view body, const tools& known);

// <function=NAME>, <parameter=NAME> VALUE </parameter> for each argument, </function>, once or
// several times. A value has the type from the tool's description; without one, it is JSON if it
// parses, else a text.
calls_or_reason read_tagged_calls(std::string_view body, const tools& known);

// Removes ``` lines around the body, as in "```python
// ...
// ```".
std::string_view without_fence(std::string_view body);

// The notation of python_call()'s arguments. `never`: a text that ends the call and so may not
// occur.
schema::notation python_notation(std::string_view never);

// Writes NAME(key=value, ...) with Python literals.
std::string python_call(const call& one);

}  // namespace bitnet::answer

#pragma once
// The forms in which calls are written between the marks of a dialect.

#include "answer/dialect.hpp"

namespace bitnet::answer {

// {"name": NAME, "arguments": OBJECT}, or "parameters" in place of "arguments", also within
// {"type": "function", "function": ...}; or a list of these. The arguments may be a JSON text in a
// string, or missing.
calls_or_reason read_json_calls(std::string_view body);

// NAME(key=value, ...), one or several lines of them, or a list of them in brackets. Values are
// Python's literals; values without a key are those of the tool's parameters, in order.
calls_or_reason read_python_calls(std::string_view body, const tools& known);

// <function=NAME>, <parameter=NAME> VALUE </parameter> for each argument, </function>, once or
// several times. A value is of the type that the tool's description says; where that says nothing,
// it is JSON if it parses as such, else a text.
calls_or_reason read_tagged_calls(std::string_view body, const tools& known);

// Without ``` lines around it, as in "```python\n...\n```".
std::string_view without_fence(std::string_view body);

// How arguments of python_call() are written; `never`: what ends the call, wherever it stands.
schema::notation python_notation(std::string_view never);

// NAME(key=value, ...) with Python's literals.
std::string python_call(const call& one);

}  // namespace bitnet::answer

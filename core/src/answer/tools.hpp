#pragma once
// The tools of a request: names, types of parameters, and schemas for calls that a grammar binds.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "json/value.hpp"

namespace bitnet::answer {

struct parameter {
  std::string name;
  std::vector<std::string> types;  // JSON Schema types: "string", "integer"; empty: any
};

struct tool {
  std::string name;
  std::vector<parameter> parameters;  // in the order of the request
  std::string schema = {};            // of the parameters, as JSON; "": none
  std::string schema_path = {};       // "tools[1].function.parameters"
  bool strict = false;                // reject a schema that cannot be bound

  [[nodiscard]] const parameter* find(std::string_view parameter_name) const;
};

using tools = std::vector<tool>;

[[nodiscard]] const tool* find(const tools& all, std::string_view name);

// Reads a list in OpenAI's form, [{"type": "function", "function": {"name", "description",
// "parameters"}}], or of bare functions. `path` is for messages. BITNET_INVALID_ARGUMENT for other
// forms, duplicate names, and names that are not up to 64 letters, digits, '_', '-' and '.', so
// that syntax around a name stays unambiguous.
result<tools> read_tools(const json::value& list, std::string_view path);
result<tools> parse_tools(std::string_view text, std::string_view path);

}  // namespace bitnet::answer

#pragma once
// The tools of a request, as far as answers need them: names, the types of parameters, and the
// schemas that demanded calls follow.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "json/value.hpp"

namespace bitnet::answer {

struct parameter {
  std::string name;
  std::vector<std::string> types;  // of JSON Schema: "string", "integer"; empty: any
};

struct tool {
  std::string name;
  std::vector<parameter> parameters;  // in the order of the description
  std::string schema = {};            // of the parameters, as JSON; "": none
  std::string schema_path = {};       // "tools[1].function.parameters"
  bool strict = false;                // a schema that cannot be followed is an error

  [[nodiscard]] const parameter* find(std::string_view parameter_name) const;
};

using tools = std::vector<tool>;

[[nodiscard]] const tool* find(const tools& all, std::string_view name);

// Of a list in OpenAI's form, [{"type": "function", "function": {"name", "description",
// "parameters"}}]; a function alone, without the outer object, is one too. `path` is for messages.
// BITNET_INVALID_ARGUMENT for anything else, and for a name that comes twice or is not made of
// letters, digits, '_', '-' and '.', 64 at most; then syntax around a name stays unambiguous.
result<tools> read_tools(const json::value& list, std::string_view path);
result<tools> parse_tools(std::string_view text, std::string_view path);

}  // namespace bitnet::answer

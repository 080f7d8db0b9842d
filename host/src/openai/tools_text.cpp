#include "openai/tools_text.hpp"

#include <fmt/format.h>

#include "openai/raw_member.hpp"

namespace bitnet::host::openai {
namespace {

using nlohmann::json;

// Builds {"type": "function", "function": {...}}. `raw`: the tool's raw text.
std::string function_of(field_reader& tool, std::string_view raw, const char* schema) {
  std::string name, description;
  if (tool.any("name") == nullptr) tool.wrong("name", "a string");
  tool.text("name", name);
  tool.text("description", description);
  bool strict = false;
  tool.flag("strict", strict);
  const json* const parameters = tool.any(schema);
  if (parameters != nullptr && !parameters->is_object()) tool.wrong(schema, "a JSON schema");
  if (tool.error()) return "";
  std::string out = fmt::format(R"({{"type":"function","function":{{"name":{})", json(name).dump());
  if (!description.empty()) out += fmt::format(R"(,"description":{})", json(description).dump());
  if (parameters != nullptr) out += fmt::format(R"(,"parameters":{})", raw_member(raw, schema));
  if (strict) out += R"(,"strict":true)";
  return out + "}}";
}

}  // namespace

tool_list read_tools(field_reader& in, std::string_view body, const char* own_type,
                     const char* schema) {
  tool_list out;
  const json* const found = in.any("tools");
  if (found == nullptr || in.error()) return out;
  if (!found->is_array()) return in.wrong("tools", "an array"), out;
  const std::vector<std::string_view> written = raw_elements(raw_member(body, "tools"));
  for (std::size_t i = 0; i < found->size() && i < written.size(); ++i) {
    const json& one = (*found)[i];
    const std::string path = fmt::format("tools[{}]", i);
    if (!one.is_object()) {
      in.keep(invalid(path, fmt::format("'{}' expects an object, found {}", path, shown(one)),
                      "invalid_type")
                  .error());
      return out;
    }
    field_reader tool(one, path + ".");
    std::string type = own_type;
    tool.text("type", type);
    if (type != own_type && !tool.error()) {
      out.ignored.push_back(fmt::format("{}: {}", path, type));
      continue;
    }
    out.text += (out.text.empty() ? "[" : ",") + function_of(tool, written[i], schema);
    if (const auto& why = tool.error()) return in.keep(*why), out;
  }
  if (!out.text.empty()) out.text += ']';
  return out;
}

std::string template_arguments_of(field_reader& in, std::string_view effort) {
  json out = json::object();
  if (!effort.empty()) {
    out["enable_thinking"] = effort != "none";
    out["reasoning_effort"] = effort;
  }
  const json* const given = in.any("chat_template_kwargs");
  if (given != nullptr && !given->is_object()) in.wrong("chat_template_kwargs", "an object");
  if (given != nullptr && given->is_object()) out.update(*given);
  return out.empty() ? "" : out.dump();
}

}  // namespace bitnet::host::openai

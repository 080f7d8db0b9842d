#include "anthropic/request.hpp"

#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "anthropic/messages.hpp"
#include "openai/answer_form.hpp"
#include "openai/tools_text.hpp"

namespace bitnet::host::anthropic {
namespace {

using nlohmann::json;
using openai::field_reader;
using openai::request;

void read_choice(field_reader& in, request& to) {
  const json* const found = in.any("tool_choice");
  if (found == nullptr || in.error()) return;
  if (!found->is_object()) return in.wrong("tool_choice", "an object with 'type'");
  field_reader fields(*found, "tool_choice.");
  std::string type, name;
  fields.text("type", type);
  fields.flag("disable_parallel_tool_use", to.one_call);
  if (type == "tool") {
    if (fields.any("name") == nullptr) fields.wrong("name", "the name of a tool");
    fields.text("name", name);
    to.tool_choice = json{{"type", "function"}, {"function", {{"name", name}}}}.dump();
  } else if (type == "any") {
    to.tool_choice = R"("required")";
  } else if (type == "auto" || type == "none") {
    to.tool_choice = json(type).dump();
  } else {
    fields.wrong("type", R"("auto", "any", "tool" or "none")");
  }
  if (const auto& why = fields.error()) in.keep(*why);
}

void read_stops(field_reader& in, request& to) {
  const json* const found = in.any("stop_sequences");
  if (found == nullptr || in.error()) return;
  if (!found->is_array()) return in.wrong("stop_sequences", "an array of texts");
  to.how.stops.clear();
  for (const json& one : *found) {
    if (!one.is_string() || one.get_ref<const std::string&>().empty())
      return in.wrong("stop_sequences", "an array of texts that are not empty");
    to.how.stops.push_back(one.get<std::string>());
  }
}

// The requested effort of thinking.
std::string effort_of(field_reader& in, openai::generation_wish& how) {
  const json* const found = in.any("thinking");
  if (found == nullptr || in.error()) return "";
  if (!found->is_object()) return in.wrong("thinking", "an object with 'type'"), "";
  field_reader fields(*found, "thinking.");
  std::string type;
  fields.text("type", type);
  int32_t budget = how.reasoning_budget;
  fields.number("budget_tokens", 1, std::numeric_limits<int32_t>::max(), budget);
  if (type != "enabled" && type != "disabled" && type != "adaptive")
    fields.wrong("type", R"("enabled", "disabled" or "adaptive")");
  if (const auto& why = fields.error()) in.keep(*why);
  if (type == "enabled") how.reasoning_budget = budget;
  return type == "disabled" ? "none" : type == "enabled" ? "high" : "";
}

std::string ignored_of(const openai::tool_list& tools) {
  return tools.ignored.empty() ? "" : "\"ignored_tools\":" + json(tools.ignored).dump();
}

openai::parsed<request> read(const json& body, std::string_view text,
                             const openai::model_limits& model,
                             const openai::generation_wish& defaults, bool answers) {
  field_reader in(body);
  request out;
  out.how = defaults;
  in.text("model", out.model);
  openai::read_generation(in, text, model.n_vocab, out.how);
  if (out.how.n_choices != 1)
    in.keep(openai::unsupported("n", "a message is one answer; send the body again for another")
                .error());
  if (answers && (in.any("max_tokens") == nullptr || out.how.max_tokens < 1))
    in.wrong("max_tokens", "a whole number of at least 1");
  openai::read_format_of(in, text, "output_config", out.how);
  in.reject("mcp_servers", "the server connects to no others; give their tools as 'tools'");
  in.reject("container", "the server runs no tools");
  in.flag("stream", out.stream);
  read_stops(in, out);
  out.messages = messages_of(in, text, defaults);
  const openai::tool_list tools = openai::read_tools(in, text, "custom", "input_schema");
  read_choice(in, out);
  out.template_arguments = openai::template_arguments_of(in, effort_of(in, out.how));
  if (const auto& why = in.error()) return std::unexpected(*why);
  out.tools = tools.text;
  out.repeated = ignored_of(tools);
  return out;
}

}  // namespace

openai::parsed<request> parse_request(const json& body, std::string_view text,
                                      const openai::model_limits& model,
                                      const openai::generation_wish& defaults) {
  return read(body, text, model, defaults, true);
}

openai::parsed<request> parse_count(const json& body, std::string_view text,
                                    const openai::model_limits& model,
                                    const openai::generation_wish& defaults) {
  return read(body, text, model, defaults, false);
}

}  // namespace bitnet::host::anthropic

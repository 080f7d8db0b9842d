#include "responses/request.hpp"

#include <fmt/format.h>

#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "openai/answer_form.hpp"
#include "openai/shortest.hpp"
#include "openai/system_lines.hpp"
#include "openai/tools_text.hpp"
#include "responses/input_items.hpp"

namespace bitnet::host::responses {
namespace {

using nlohmann::json;
using openai::field_reader;
using openai::request;

void reject_state(field_reader& in) {
  for (const char* name : {"previous_response_id", "conversation"})
    in.reject(name, "no response is kept; send the whole conversation as 'input'");
  in.reject("background", "an answer comes on its connection; leave it out, or use bitnet batch");
  in.reject("prompt", "no prompt is kept; send it as 'instructions' and 'input'");
  std::string truncation = "disabled";
  in.text("truncation", truncation);
  if (truncation != "disabled")
    in.keep(openai::unsupported("truncation",
                                "the server leaves out nothing of a conversation; give "
                                "\"disabled\", and a shorter 'input' where it is too long")
                .error());
}

// Other members of `include` name content that this server never has.
void read_logprobs(field_reader& in, openai::generation_wish& how) {
  constexpr const char* included = "message.output_text.logprobs";
  constexpr double most_top = 20;  // as for chats
  in.number("top_logprobs", 0, most_top, how.n_top_logprobs);
  const json* const include = in.any("include");
  if (include != nullptr && !include->is_array()) return in.wrong("include", "an array of strings");
  how.logprobs = include != nullptr && std::ranges::find(*include, included) != include->end();
  if (how.n_top_logprobs != 0 && !how.logprobs)
    in.keep(openai::invalid("top_logprobs",
                            fmt::format("'top_logprobs' needs \"{}\" in 'include'", included))
                .error());
}

std::string effort_of(field_reader& in, openai::generation_wish& how) {
  const json* const found = in.any("reasoning");
  if (found == nullptr || in.error()) return "";
  if (!found->is_object()) return in.wrong("reasoning", "an object with 'effort'"), "";
  field_reader fields(*found, "reasoning.");
  std::string effort;
  fields.text("effort", effort);
  fields.number("max_tokens", 1, std::numeric_limits<int32_t>::max(), how.reasoning_budget);
  constexpr std::array known = {"", "none", "minimal", "low", "medium", "high", "xhigh"};
  if (std::ranges::find(known, effort) == known.end())
    fields.wrong("effort", "\"none\", \"minimal\", \"low\", \"medium\", \"high\" or \"xhigh\"");
  if (const auto& why = fields.error()) in.keep(*why);
  return effort;
}

// In {"type": "function", "name": ...}, chats have the name in an object of its own.
std::string tool_choice_of(field_reader& in) {
  const json* const found = in.any("tool_choice");
  if (found == nullptr || in.error()) return "";
  if (found->is_string()) return found->dump(-1, ' ', false, json::error_handler_t::replace);
  const bool is_function = found->is_object() && found->value("type", json()) == "function" &&
                           found->contains("name") && (*found)["name"].is_string();
  if (is_function)
    return json{{"type", "function"}, {"function", {{"name", (*found)["name"]}}}}.dump();
  in.wrong("tool_choice",
           "\"auto\", \"none\", \"required\" or {\"type\": \"function\", \"name\": ...}");
  return "";
}

// The body's tools; a function gets each member that the API's description requires.
json repeated_tools(const json& of_body) {
  json out = json::array();
  for (const json& one : of_body) {
    json tool = one;
    if (tool.value("type", json()) == "function")
      for (const char* name : {"description", "parameters", "strict"})
        if (!tool.contains(name)) tool[name] = nullptr;
    out.push_back(std::move(tool));
  }
  return out;
}

// One line, with the names in order.
std::string repeated_of(const json& body, const request& from,
                        const std::vector<std::string>& ignored) {
  const bitnet_sampling& sampling = from.how.sampling;
  json out = {{"frequency_penalty", openai::shortest(sampling.frequency_penalty)},
              {"instructions", nullptr},
              {"max_output_tokens", nullptr},
              {"metadata", json::object()},
              {"parallel_tool_calls", !from.one_call},
              {"presence_penalty", openai::shortest(sampling.presence_penalty)},
              {"prompt_cache_key", nullptr},
              {"reasoning", {{"effort", nullptr}, {"summary", nullptr}}},
              {"safety_identifier", nullptr},
              {"text", {{"format", {{"type", "text"}}}}},
              {"tool_choice", "auto"},
              {"tools", json::array()},
              {"top_logprobs", from.how.n_top_logprobs}};
  for (const char* name : {"instructions", "metadata", "reasoning", "text", "tool_choice",
                           "max_output_tokens", "user", "prompt_cache_key", "safety_identifier"})
    if (const auto found = body.find(name); found != body.end() && !found->is_null())
      out[name] = *found;
  if (const auto found = body.find("tools"); found != body.end() && found->is_array())
    out["tools"] = repeated_tools(*found);
  out["temperature"] = openai::shortest(sampling.temperature);
  out["top_p"] = openai::shortest(sampling.top_p);
  if (!ignored.empty()) out["ignored_tools"] = ignored;
  const std::string text = out.dump(-1, ' ', false, json::error_handler_t::replace);
  return text.substr(1, text.size() - 2);
}

}  // namespace

openai::parsed<request> parse_request(const json& body, std::string_view text,
                                      const openai::model_limits& model,
                                      const openai::generation_wish& defaults) {
  field_reader in(body);
  request out;
  out.how = defaults;
  in.text("model", out.model);
  reject_state(in);
  read_logprobs(in, out.how);
  openai::read_generation(in, text, model.n_vocab, out.how);
  if (out.how.n_choices != 1)
    in.keep(openai::unsupported("n", "a response is one answer; send the body again for another")
                .error());
  in.number("max_output_tokens", 1, std::numeric_limits<int32_t>::max(), out.how.max_tokens);
  openai::read_format_of(in, text, "text", out.how);
  in.flag("stream", out.stream);
  bool several = true;
  in.flag("parallel_tool_calls", several);
  out.one_call = !several;
  json messages = messages_of(in);
  openai::settle_messages(messages, defaults);
  const openai::tool_list tools = openai::read_tools(in, text, "function", "parameters");
  out.tool_choice = tool_choice_of(in);
  out.template_arguments = openai::template_arguments_of(in, effort_of(in, out.how));
  if (const json* const metadata = in.any("metadata"); metadata && !metadata->is_object())
    in.wrong("metadata", "an object");
  if (const auto& why = in.error()) return std::unexpected(*why);
  out.messages = messages.dump();
  out.tools = tools.text;
  out.repeated = repeated_of(body, out, tools.ignored);
  return out;
}

}  // namespace bitnet::host::responses

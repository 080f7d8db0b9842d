#include "library/saved_chat.hpp"

#include <nlohmann/json.hpp>
#include <utility>

#include "library/json.hpp"
#include "text/json_members.hpp"

namespace bitnet::host {
namespace {

using nlohmann::json;

bool is_text(const json& from, const char* key) {
  return text::at(from, key).is_string();
}

}  // namespace

std::string write_saved_chat(const std::vector<chat_message>& messages) {
  json list = json::array();
  for (const chat_message& one : messages)
    list.push_back({{"role", one.role}, {"content", one.content}});
  return json_line({{"messages", std::move(list)}});
}

result<std::vector<chat_message>> read_saved_chat(const std::string& text) {
  const auto malformed = [] {
    return fail(exit_code::usage, "expected {\"messages\": [{\"role\": ..., \"content\": ...}]}");
  };
  // Deeper is no message: what is there is not built, however deep it goes.
  constexpr int deepest = 3;
  const json content = json::parse(
      text, [](int depth, json::parse_event_t, json&) { return depth <= deepest; }, false);
  if (!content.is_object() || !content.contains("messages") || !content["messages"].is_array())
    return malformed();
  std::vector<chat_message> out;
  for (const json& one : content["messages"]) {
    if (!one.is_object() || !is_text(one, "role") || !is_text(one, "content")) return malformed();
    const std::string role = one["role"];
    const bool known = role == "user" || role == "assistant" || (role == "system" && out.empty());
    if (!known) return malformed();
    out.push_back({role, one["content"]});
  }
  return out;
}

}  // namespace bitnet::host

#include "session/saved_chat.hpp"

#include <nlohmann/json.hpp>
#include <utility>

#include "basic/json.hpp"
#include "text/json_members.hpp"

namespace bitnet::host {
namespace {

using nlohmann::json;

bool is_text(const json& from, const char* key) {
  return text::at(from, key).is_string();
}

json list_of_messages(std::span<const chat_message> messages) {
  json list = json::array();
  for (const chat_message& one : messages) {
    json message = {{"role", one.role}, {"content", one.content}};
    if (!one.more.empty()) message.update(json::parse(one.more));
    list.push_back(std::move(message));
  }
  return list;
}

// The other members that calls need, as JSON text.
std::string more_of(const json& message) {
  json more = json::object();
  for (const char* key : {"tool_calls", "tool_call_id", "reasoning_content"})
    if (message.contains(key)) more[key] = message[key];
  return more.empty() ? "" : json_text(more);
}

}  // namespace

std::string messages_json(std::span<const chat_message> messages) {
  return json_text(list_of_messages(messages));
}

std::string write_saved_chat(std::span<const chat_message> messages) {
  return json_line({{"messages", list_of_messages(messages)}});
}

result<std::vector<chat_message>> read_saved_chat(const std::string& text) {
  const auto malformed = [] {
    return fail(exit_code::usage, "expected {\"messages\": [{\"role\": ..., \"content\": ...}]}");
  };
  if (text::zero_byte(text)) return malformed();
  // A deeper document is not a chat, so deeper parts are not built.
  constexpr int deepest = 7;  // a call's arguments are a text, so depth 7 is enough
  const json content = json::parse(
      text, [](int depth, json::parse_event_t, json&) { return depth <= deepest; }, false);
  if (!content.is_object() || !content.contains("messages") || !content["messages"].is_array())
    return malformed();
  std::vector<chat_message> out;
  for (const json& one : content["messages"]) {
    if (!one.is_object() || !is_text(one, "role") || !is_text(one, "content")) return malformed();
    const std::string role = one["role"];
    const bool known = role == "user" || role == "assistant" || role == "tool" ||
                       (role == "system" && out.empty());
    if (!known) return malformed();
    out.push_back({role, one["content"], more_of(one)});
  }
  return out;
}

}  // namespace bitnet::host

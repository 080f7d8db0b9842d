#include "responses/input_items.hpp"

#include <fmt/format.h>

#include <array>
#include <string>
#include <utility>

namespace bitnet::host::responses {
namespace {

using nlohmann::json;
using openai::field_reader;

// Joins items into messages: calls and thinking belong to one assistant message.
class message_list {
 public:
  void add(const std::string& role, json content) {
    json one = {{"role", role}, {"content", std::move(content)}};
    if (role == "assistant") take_thinking(one);
    list_.push_back(std::move(one));
  }
  void add_call(const std::string& id, const std::string& name, const std::string& arguments) {
    if (list_.empty() || list_.back()["role"] != "assistant") add("assistant", nullptr);
    json& calls = list_.back()["tool_calls"];
    calls.push_back({{"id", id},
                     {"type", "function"},
                     {"function", {{"name", name}, {"arguments", arguments}}}});
  }
  void add_result(const std::string& id, json content) {
    list_.push_back({{"role", "tool"}, {"tool_call_id", id}, {"content", std::move(content)}});
  }
  void add_thinking(const std::string& text) { thinking_ += text; }
  [[nodiscard]] json take() { return std::move(list_); }

 private:
  void take_thinking(json& to) {
    if (!thinking_.empty()) to["reasoning_content"] = std::exchange(thinking_, "");
  }

  json list_ = json::array();
  std::string thinking_;  // for the next assistant message
};

// Reads a text, or parts with texts. `kinds`: allowed types of parts.
json content_of(field_reader& item, const char* name, std::initializer_list<const char*> kinds) {
  const json* const found = item.any(name);
  if (found != nullptr && found->is_string()) return *found;
  if (found == nullptr || !found->is_array()) {
    item.wrong(name, "a text or a list of parts");
    return nullptr;
  }
  json parts = json::array();
  for (std::size_t i = 0; i < found->size(); ++i) {
    const json& one = (*found)[i];
    const std::string path = fmt::format("{}[{}]", item.path_of(name), i);
    if (!one.is_object()) {
      item.keep(openai::invalid(
                    path, fmt::format("'{}' expects an object, found {}", path, openai::shown(one)),
                    "invalid_type")
                    .error());
      return nullptr;
    }
    field_reader part(one, path + ".");
    std::string type, text;
    part.text("type", type);
    const bool is_refusal = type == "refusal";
    const bool known =
        is_refusal || std::ranges::any_of(kinds, [&](const char* kind) { return type == kind; });
    if (!known)
      part.keep(openai::unsupported(path + ".type",
                                    fmt::format("the model reads texts, and this is {}; send its "
                                                "text as input_text",
                                                openai::shown(one.value("type", json()))))
                    .error());
    const char* const member = is_refusal ? "refusal" : "text";
    if (part.any(member) == nullptr) part.wrong(member, "a text");
    part.text(member, text);
    if (const auto& why = part.error()) item.keep(*why);
    parts.push_back({{"type", "text"}, {"text", std::move(text)}});
  }
  return parts;
}

void add_message(field_reader& item, message_list& to) {
  std::string role;
  item.text("role", role);
  constexpr std::array roles = {"user", "assistant", "system", "developer"};
  if (std::ranges::find(roles, role) == roles.end())
    item.wrong("role", "\"user\", \"assistant\", \"system\" or \"developer\"");
  json content = content_of(item, "content", {"input_text", "output_text", "text"});
  if (!item.error()) to.add(role, std::move(content));
}

void add_call(field_reader& item, message_list& to) {
  std::string id, name, arguments;
  for (const char* needed : {"call_id", "name", "arguments"})
    if (item.any(needed) == nullptr) item.wrong(needed, "a string");
  item.text("call_id", id);
  item.text("name", name);
  item.text("arguments", arguments);
  if (!item.error()) to.add_call(id, name, arguments);
}

void add_result(field_reader& item, message_list& to) {
  std::string id;
  if (item.any("call_id") == nullptr) item.wrong("call_id", "a string");
  item.text("call_id", id);
  json content = content_of(item, "output", {"input_text", "output_text", "text"});
  if (!item.error()) to.add_result(id, std::move(content));
}

// Takes its content, else its summary. Encrypted content is ignored: this server never wrote any.
void add_thinking(field_reader& item, message_list& to) {
  for (const char* name : {"content", "summary"}) {
    const json* const found = item.any(name);
    if (found == nullptr || (found->is_array() && found->empty())) continue;
    const json parts = content_of(item, name, {"reasoning_text", "summary_text", "text"});
    if (item.error()) return;
    if (parts.is_string()) return to.add_thinking(parts.get<std::string>());
    for (const json& part : parts) to.add_thinking(part["text"].get<std::string>());
    return;
  }
}

void add_item(field_reader& item, message_list& to) {
  std::string type = "message";
  item.text("type", type);
  if (type == "message") return add_message(item, to);
  if (type == "function_call") return add_call(item, to);
  if (type == "function_call_output") return add_result(item, to);
  if (type == "reasoning") return add_thinking(item, to);
  item.keep(openai::unsupported(item.path_of("type"),
                                "an item is a message, a function_call, a function_call_output or "
                                "a reasoning; leave others out")
                .error());
}

}  // namespace

json messages_of(field_reader& in) {
  message_list out;
  std::string instructions;
  in.text("instructions", instructions);
  if (!instructions.empty()) out.add("system", instructions);
  const json* const input = in.any("input");
  if (input != nullptr && input->is_string()) {
    out.add("user", *input);
  } else if (input == nullptr || !input->is_array() || input->empty()) {
    in.wrong("input", "a text, or a list of at least one item");
  } else {
    for (std::size_t i = 0; i < input->size() && !in.error(); ++i) {
      const std::string path = fmt::format("input[{}]", i);
      if (!(*input)[i].is_object()) {
        in.keep(openai::invalid(path,
                                fmt::format("'{}' expects an object, found {}", path,
                                            openai::shown((*input)[i])),
                                "invalid_type")
                    .error());
        break;
      }
      field_reader item((*input)[i], path + ".");
      add_item(item, out);
      if (const auto& why = item.error()) in.keep(*why);
    }
  }
  return out.take();
}

}  // namespace bitnet::host::responses

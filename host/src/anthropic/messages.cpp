#include "anthropic/messages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "openai/raw_member.hpp"
#include "openai/system_lines.hpp"

namespace bitnet::host::anthropic {
namespace {

using nlohmann::json;
using openai::field_reader;

// A block of a message. `content` is a list of blocks, or a text, which counts as one block.
struct content_block {
  const json& value;
  std::string_view written;  // raw text
  std::string path;
};

std::vector<content_block> blocks_of(field_reader& in, const char* name, std::string_view written) {
  std::vector<content_block> out;
  const json* const found = in.any(name);
  if (found == nullptr || (!found->is_string() && !found->is_array())) {
    in.wrong(name, "a text or a list of blocks");
    return out;
  }
  if (found->is_string()) return {{*found, written, in.path_of(name)}};
  const std::vector<std::string_view> parts = openai::raw_elements(written);
  for (std::size_t i = 0; i < found->size() && i < parts.size(); ++i) {
    std::string path = fmt::format("{}[{}]", in.path_of(name), i);
    if (!(*found)[i].is_object()) {
      in.keep(openai::invalid(
                  path,
                  fmt::format("'{}' expects an object, found {}", path, openai::shown((*found)[i])),
                  "invalid_type")
                  .error());
      return out;
    }
    out.push_back({(*found)[i], parts[i], std::move(path)});
  }
  return out;
}

std::string type_of(const content_block& of) {
  if (of.value.is_string()) return "text";
  const auto found = of.value.find("type");
  return found != of.value.end() && found->is_string() ? found->get<std::string>() : "";
}

std::string text_in(field_reader& in, const content_block& of, const char* member) {
  if (of.value.is_string()) return of.value.get<std::string>();
  field_reader reader(of.value, of.path + ".");
  std::string out;
  if (reader.any(member) == nullptr) reader.wrong(member, "a text");
  reader.text(member, out);
  if (const auto& why = reader.error()) in.keep(*why);
  return out;
}

void reject_type(field_reader& in, const content_block& of, std::string_view possible) {
  in.keep(openai::unsupported(of.path + ".type",
                              fmt::format("the model reads texts, and this is {}; possible are {}",
                                          openai::shown(of.value.value("type", json())), possible))
              .error());
}

// Returns the text blocks as the parts of a chat's message.
json texts_of(field_reader& in, const char* name, std::string_view written) {
  json out = json::array();
  for (const content_block& one : blocks_of(in, name, written)) {
    if (type_of(one) != "text") reject_type(in, one, "blocks of the type text");
    if (in.error()) break;
    out.push_back({{"type", "text"}, {"text", text_in(in, one, "text")}});
  }
  return out;
}

// Collects the messages of a chat made from an API's messages.
class message_writer {
 public:
  explicit message_writer(field_reader& in) : in_(in) {}

  void add_system(std::string_view written, const openai::generation_wish& how) {
    if (in_.any("system") == nullptr) return;
    json texts = texts_of(in_, "system", written);
    (void)openai::settle_system(texts, how);
    if (!texts.empty()) add({{"role", "system"}, {"content", std::move(texts)}});
  }
  void add_user(field_reader& message, std::string_view content);
  void add_assistant(field_reader& message, std::string_view content);
  [[nodiscard]] std::string take() { return text_.empty() ? "" : text_ + "]"; }

 private:
  void add(const json& message) { add_text(message.dump()); }
  void add_text(std::string_view message) {
    text_ += text_.empty() ? "[" : ",";
    text_ += message;
  }
  void add_result(field_reader& message, const content_block& of);
  // Builds a call as raw text, so that the model sees its arguments in the order in which it wrote
  // them.
  [[nodiscard]] std::string call_of(field_reader& message, const content_block& of);

  field_reader& in_;
  std::string text_;
};

void message_writer::add_result(field_reader& message, const content_block& of) {
  field_reader result(of.value, of.path + ".");
  std::string id;
  if (result.any("tool_use_id") == nullptr) result.wrong("tool_use_id", "a string");
  result.text("tool_use_id", id);
  bool is_error = false;
  result.flag("is_error", is_error);
  json texts = json::array();
  if (result.any("content") != nullptr)
    texts = texts_of(result, "content", openai::raw_member(of.written, "content"));
  if (const auto& why = result.error()) return message.keep(*why);
  if (is_error) texts.insert(texts.begin(), json{{"type", "text"}, {"text", "Error:"}});
  if (texts.empty()) texts.push_back({{"type", "text"}, {"text", ""}});
  add({{"role", "tool"}, {"tool_call_id", id}, {"content", std::move(texts)}});
}

void message_writer::add_user(field_reader& message, std::string_view content) {
  json texts = json::array();
  for (const content_block& one : blocks_of(message, "content", content)) {
    const std::string type = type_of(one);
    if (type == "tool_result")
      add_result(message, one);
    else if (type == "text")
      texts.push_back({{"type", "text"}, {"text", text_in(message, one, "text")}});
    else
      reject_type(message, one, "blocks of the types text and tool_result");
    if (message.error()) return;
  }
  if (!texts.empty()) add({{"role", "user"}, {"content", std::move(texts)}});
}

std::string message_writer::call_of(field_reader& message, const content_block& of) {
  field_reader call(of.value, of.path + ".");
  std::string id, name;
  for (const char* needed : {"id", "name"})
    if (call.any(needed) == nullptr) call.wrong(needed, "a string");
  call.text("id", id);
  call.text("name", name);
  const json* const input = call.any("input");
  if (input == nullptr || !input->is_object()) call.wrong("input", "an object");
  if (const auto& why = call.error()) return message.keep(*why), "";
  return fmt::format(R"({{"id":{},"type":"function","function":{{"name":{},"arguments":{}}}}})",
                     json(id).dump(), json(name).dump(), openai::raw_member(of.written, "input"));
}

void message_writer::add_assistant(field_reader& message, std::string_view content) {
  json texts = json::array();
  std::string thinking, calls;
  for (const content_block& one : blocks_of(message, "content", content)) {
    const std::string type = type_of(one);
    if (type == "tool_use")
      calls += (calls.empty() ? "[" : ",") + call_of(message, one);
    else if (type == "text")
      texts.push_back({{"type", "text"}, {"text", text_in(message, one, "text")}});
    else if (type == "thinking")
      thinking += text_in(message, one, "thinking");
    else if (type != "redacted_thinking")
      reject_type(message, one, "blocks of the types text, thinking and tool_use");
    if (message.error()) return;
  }
  json out = {{"role", "assistant"}, {"content", std::move(texts)}};
  if (out["content"].empty()) out["content"] = nullptr;
  if (!thinking.empty()) out["reasoning_content"] = thinking;
  std::string text = out.dump();
  if (!calls.empty()) text.insert(text.size() - 1, fmt::format(R"(,"tool_calls":{}])", calls));
  add_text(text);
}

}  // namespace

std::string messages_of(field_reader& in, std::string_view body,
                        const openai::generation_wish& how) {
  message_writer out(in);
  out.add_system(openai::raw_member(body, "system"), how);
  const json* const found = in.any("messages");
  if (found == nullptr || !found->is_array() || found->empty()) {
    in.wrong("messages", "an array of at least one message");
    return "";
  }
  const std::vector<std::string_view> written =
      openai::raw_elements(openai::raw_member(body, "messages"));
  std::string role;
  for (std::size_t i = 0; i < found->size() && i < written.size() && !in.error(); ++i) {
    const std::string path = fmt::format("messages[{}]", i);
    if (!(*found)[i].is_object()) {
      in.keep(openai::invalid(
                  path,
                  fmt::format("'{}' expects an object, found {}", path, openai::shown((*found)[i])),
                  "invalid_type")
                  .error());
      break;
    }
    field_reader message((*found)[i], path + ".");
    message.text("role", role);
    const std::string_view content = openai::raw_member(written[i], "content");
    if (role == "user")
      out.add_user(message, content);
    else if (role == "assistant")
      out.add_assistant(message, content);
    else
      message.wrong("role", "\"user\" or \"assistant\"");
    if (const auto& why = message.error()) in.keep(*why);
  }
  if (!in.error() && role == "assistant")
    in.keep(openai::unsupported("messages",
                                "the last message is the assistant's, and an answer to it begins "
                                "anew; end with a message of the user")
                .error());
  return out.take();
}

}  // namespace bitnet::host::anthropic

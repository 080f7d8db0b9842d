#include "chat/request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace bitnet::chat {
namespace {

using json::member;
using json::rejected;

// Variables that a template gets from elsewhere.
constexpr std::array<std::string_view, 5> taken_names = {
    "messages", "tools", "add_generation_prompt", "bos_token", "eos_token"};

result<std::string> text_or_nothing(const json::value& object, const char* name,
                                    const std::string& path) {
  const json::value& found = member(object, name);
  if (found.is_null()) return "";
  if (found.is_string()) return found.get<std::string>();
  return rejected(fmt::format("{}.{}", path, name), "a text", found);
}

result<std::string> read_content(const json::value& content, const std::string& path) {
  if (content.is_null()) return "";
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array()) return rejected(path, "a text or a list of parts", content);
  std::string out;
  for (std::size_t i = 0; i < content.size(); ++i) {
    const std::string at = fmt::format("{}[{}]", path, i);
    const json::value& part = content[i];
    if (!part.is_object()) return rejected(at, "an object", part);
    const json::value& type = member(part, "type");
    if (type != "text")
      return rejected(at + ".type", "'text', as models here take nothing else", type);
    const json::value& text = member(part, "text");
    if (!text.is_string()) return rejected(at + ".text", "a text", text);
    if (i > 0) out += '\n';
    out += text.get_ref<const std::string&>();
  }
  return out;
}

result<json::value> read_arguments(const json::value& given, const std::string& path) {
  if (given.is_null()) return json::value::object();
  if (given.is_object()) return given;
  if (!given.is_string()) return rejected(path, "a JSON text of an object", given);
  const auto& text = given.get_ref<const std::string&>();
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) return json::value::object();
  auto parsed = json::read(text, path);
  if (!parsed) return parsed;
  if (!parsed->is_object()) return rejected(path, "a JSON text of an object", *parsed);
  return parsed;
}

result<request_call> read_call(const json::value& given, const std::string& path) {
  if (!given.is_object()) return rejected(path, "an object", given);
  const json::value& type = member(given, "type");
  if (!type.is_null() && type != "function") return rejected(path + ".type", "'function'", type);
  const json::value& function = member(given, "function");
  if (!function.is_object()) return rejected(path + ".function", "an object", function);
  request_call out;
  auto id = text_or_nothing(given, "id", path);
  if (!id) return std::unexpected(id.error());
  out.id = *std::move(id);
  const json::value& name = member(function, "name");
  if (!name.is_string() || name.get_ref<const std::string&>().empty())
    return rejected(path + ".function.name", "a name", name);
  out.name = name.get<std::string>();
  auto arguments = read_arguments(member(function, "arguments"), path + ".function.arguments");
  if (!arguments) return std::unexpected(arguments.error());
  out.arguments = *std::move(arguments);
  return out;
}

result<void> read_calls(const json::value& list, const std::string& path, request_message& to) {
  if (list.is_null()) return {};
  if (!list.is_array()) return rejected(path, "a list of calls", list);
  if (to.role != "assistant" && !list.empty())
    return fail(BITNET_INVALID_ARGUMENT,
                fmt::format("{}: expected calls in messages of the role assistant only, found them "
                            "in one of '{}'",
                            path, to.role));
  for (std::size_t i = 0; i < list.size(); ++i) {
    auto one = read_call(list[i], fmt::format("{}[{}]", path, i));
    if (!one) return std::unexpected(one.error());
    to.calls.push_back(*std::move(one));
  }
  return {};
}

result<request_message> read_message(const json::value& given, const std::string& path) {
  if (!given.is_object()) return rejected(path, "an object", given);
  request_message out;
  const json::value& role = member(given, "role");
  constexpr std::array<std::string_view, 5> roles = {"system", "developer", "user", "assistant",
                                                     "tool"};
  if (!role.is_string() ||
      std::ranges::find(roles, role.get_ref<const std::string&>()) == roles.end())
    return rejected(path + ".role", "system, developer, user, assistant or tool", role);
  out.role = role.get<std::string>();
  if (const json::value& old = member(given, "function_call"); !old.is_null())
    return rejected(path + ".function_call", "nothing: calls are in 'tool_calls'", old);
  if (auto done = read_calls(member(given, "tool_calls"), path + ".tool_calls", out); !done)
    return std::unexpected(done.error());
  const json::value& content = member(given, "content");
  auto thinking = text_or_nothing(given, "reasoning_content", path);
  if (!thinking) return std::unexpected(thinking.error());
  out.thinking = *std::move(thinking);
  if (content.is_null() && (out.role != "assistant" || (out.calls.empty() && out.thinking.empty())))
    return rejected(path + ".content", "a text or a list of parts", content);
  auto text = read_content(content, path + ".content");
  if (!text) return std::unexpected(text.error());
  out.content = *std::move(text);
  auto name = text_or_nothing(given, "name", path);
  if (!name) return std::unexpected(name.error());
  out.name = *std::move(name);
  auto id = text_or_nothing(given, "tool_call_id", path);
  if (!id) return std::unexpected(id.error());
  out.call_id = *std::move(id);
  return out;
}

result<void> read_messages(std::string_view text, conversation& to) {
  const auto list = json::read(text, "messages");
  if (!list) return std::unexpected(list.error());
  if (!list->is_array() || list->empty())
    return rejected("messages", "a list of at least one message", *list);
  for (std::size_t i = 0; i < list->size(); ++i) {
    auto one = read_message((*list)[i], fmt::format("messages[{}]", i));
    if (!one) return std::unexpected(one.error());
    to.messages.push_back(*std::move(one));
  }
  return {};
}

result<void> read_choice(std::string_view text, conversation& to) {
  if (text.empty()) return {};
  const auto given = json::read(text, "tool_choice");
  if (!given) return std::unexpected(given.error());
  if (given->is_null() || *given == "auto") return {};
  if (*given == "none") {
    to.choice = calling::none;
    return {};
  }
  const bool named = given->is_object();
  if (!named && *given != "required")
    return rejected("tool_choice",
                    "'auto', 'none', 'required' or {\"type\": \"function\", \"function\": "
                    "{\"name\": ...}}",
                    *given);
  to.choice = named ? calling::named : calling::required;
  if (to.tools.empty())
    return fail(BITNET_INVALID_ARGUMENT,
                "tool_choice: expected 'auto' or 'none' where there are no tools; give the tools");
  if (!named) return {};
  const json::value& function = member(*given, "function");
  // OpenAI's responses API uses the flat form.
  const json::value& name =
      function.is_object() ? member(function, "name") : member(*given, "name");
  if (!name.is_string()) return rejected("tool_choice.function.name", "a name", name);
  to.tool = name.get<std::string>();
  if (answer::find(to.tools, to.tool) == nullptr)
    return rejected("tool_choice.function.name", "the name of one of the tools", name);
  return {};
}

result<void> read_variables(std::string_view text, conversation& to) {
  if (text.empty()) return {};
  auto given = json::read(text, "template_arguments");
  if (!given) return std::unexpected(given.error());
  if (given->is_null()) return {};
  if (!given->is_object()) return rejected("template_arguments", "an object", *given);
  for (const std::string_view name : taken_names)
    if (given->contains(name))
      return fail(BITNET_INVALID_ARGUMENT,
                  fmt::format("template_arguments.{0}: expected other names: what a template gets "
                              "as '{0}' is of the request",
                              name));
  to.variables = *std::move(given);
  return {};
}

result<void> read_tools(std::string_view text, conversation& to) {
  if (text.empty()) return {};
  auto list = json::read(text, "tools");
  if (!list) return std::unexpected(list.error());
  if (list->is_null()) return {};
  auto known = answer::read_tools(*list, "tools");
  if (!known) return std::unexpected(known.error());
  to.tools = *std::move(known);
  for (json::value& one : *list) {
    if (one.contains("function"))
      to.tool_texts.push_back(std::move(one));
    else
      to.tool_texts.push_back({{"type", "function"}, {"function", std::move(one)}});
  }
  return {};
}

}  // namespace

result<conversation> read_conversation(const conversation_text& text) {
  conversation out;
  if (auto done = read_messages(text.messages, out); !done) return std::unexpected(done.error());
  if (auto done = read_tools(text.tools, out); !done) return std::unexpected(done.error());
  if (auto done = read_choice(text.tool_choice, out); !done) return std::unexpected(done.error());
  if (auto done = read_variables(text.variables, out); !done) return std::unexpected(done.error());
  return out;
}

}  // namespace bitnet::chat

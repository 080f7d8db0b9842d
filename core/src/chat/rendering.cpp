#include "chat/rendering.hpp"

#include <fmt/format.h>

#include <span>

#include "chat/fitting.hpp"

namespace bitnet::chat {
namespace {

using jinja::marked_text;
using jinja::origin;

constexpr std::string_view own_template = "model";

jinja::value as_jinja(const json::value& from) {
  switch (from.type()) {
    case json::value::value_t::boolean:
      return {from.get<bool>()};
    case json::value::value_t::number_integer:
      return {from.get<int64_t>()};
    case json::value::value_t::number_unsigned:
      if (from.get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX)) return {from.get<int64_t>()};
      return {from.get<double>()};
    case json::value::value_t::number_float:
      return {from.get<double>()};
    case json::value::value_t::string:
      return {from.get<std::string>()};
    case json::value::value_t::array: {
      jinja::sequence out;
      for (const json::value& one : from) out.push_back(as_jinja(one));
      return jinja::value::list(std::move(out));
    }
    case json::value::value_t::object: {
      jinja::dict out;
      for (const auto& [name, one] : from.items()) out.set(jinja::value(name), as_jinja(one));
      return {std::move(out)};
    }
    default:
      return jinja::value::none();
  }
}

jinja::value as_jinja(const request_call& one) {
  jinja::dict function;
  function.set("name", one.name);
  function.set("arguments", as_jinja(one.arguments));
  jinja::dict out;
  if (!one.id.empty()) out.set("id", one.id);
  out.set("type", "function");
  out.set("function", jinja::value(std::move(function)));
  return {std::move(out)};
}

jinja::value as_jinja(const request_message& one) {
  jinja::dict out;
  out.set("role", role_text(one.role));
  out.set("content", one.content);
  if (!one.thinking.empty()) out.set("reasoning_content", one.thinking);
  if (!one.name.empty()) out.set("name", one.name);
  if (!one.call_id.empty()) out.set("tool_call_id", one.call_id);
  jinja::sequence calls;
  for (const request_call& call : one.calls) calls.push_back(as_jinja(call));
  if (!calls.empty()) out.set("tool_calls", jinja::value::list(std::move(calls)));
  return {std::move(out)};
}

std::string tool_description(const conversation& talk, const answer::dialect& dialect) {
  std::string out = "You can call these functions, which are described by JSON Schemas:\n";
  for (const json::value& one : talk.tool_texts) out += json::written(one) + "\n";
  return out + std::string(dialect.instructions) +
         "\nThe results come in the next message. Call a function only where it helps.";
}

std::string calls_as_text(const request_message& one, const answer::dialect& dialect) {
  std::string out = one.content;
  for (std::size_t i = 0; i < one.calls.size(); ++i) {
    if (i > 0)
      out += dialect.between_calls;
    else if (!out.empty())
      out += "\n";
    out += dialect.write({one.calls[i].name, json::written(one.calls[i].arguments)});
  }
  return out;
}

// The messages for the form: tool use that it does not support becomes text.
std::vector<request_message> adapted(const conversation& talk, const rendering_options& how) {
  const tool_support& knows = *how.knows;
  std::vector<request_message> out;
  std::vector<std::string_view> roles;
  for (const request_message& one : talk.messages) roles.push_back(one.role);
  const std::size_t first = kept_at_front(roles);
  bool behind_result = false;
  for (std::size_t i = 0; i < talk.messages.size(); ++i) {
    if (i >= first && i < first + how.left_out) continue;
    request_message one = talk.messages[i];
    if (one.role == "developer" && !knows.developer) one.role = "system";
    if (!knows.calls && !one.calls.empty() && knows.dialect->write != nullptr) {
      one.content = calls_as_text(one, *knows.dialect);
      one.calls.clear();
    }
    const bool is_result = one.role == "tool" && !knows.results;
    if (is_result) {
      one.role = "user";
      one.content = fmt::format("<tool_response>\n{}\n</tool_response>", one.content);
      if (behind_result) {
        out.back().content += "\n" + one.content;
        continue;
      }
    }
    behind_result = is_result;
    out.push_back(std::move(one));
  }
  const bool describes = !talk.tools.empty() && talk.choice != calling::none && !knows.tools;
  if (!describes || knows.dialect->instructions.empty()) return out;
  const std::string text = tool_description(talk, *knows.dialect);
  if (out.front().role == "system") {
    out.front().content += "\n\n" + text;
    return out;
  }
  request_message described;
  described.role = "system";
  described.content = text;
  out.insert(out.begin(), std::move(described));
  return out;
}

result<marked_text> render_by_template(const source& from, const conversation& talk,
                                       std::span<const request_message> messages, bool answer,
                                       const rendering_options& how, const jinja::limits& bounds) {
  jinja::dict variables;
  for (const auto& [name, one] : talk.variables.items())
    variables.set(jinja::value(name), as_jinja(one));
  jinja::sequence list;
  for (const request_message& one : messages) list.push_back(as_jinja(one));
  variables.set("messages", jinja::value::list(std::move(list)));
  variables.set("add_generation_prompt", answer);
  if (how.knows->tools && !talk.tools.empty() && talk.choice != calling::none)
    variables.set("tools", as_jinja(talk.tool_texts));
  auto text = render_own(from, std::move(variables), bounds);
  if (text || !from.own()) return text;
  return fail(text.error().status,
              fmt::format("the model's own chat template: {}; choose another of {}",
                          text.error().message, names()));
}

result<marked_text> render_by_name(const source& from, const conversation& talk,
                                   std::span<const request_message> messages, bool answer,
                                   const rendering_options& how) {
  if (how.form == own_template) return render_by_template(from, talk, messages, answer, how, {});
  std::vector<message> views;
  for (const request_message& one : messages) views.push_back({one.role, one.content});
  return format(how.form, from, views, answer);
}

// Cuts the rendering behind the text of the last message.
result<marked_text> cut_behind_last(const marked_text& text, std::string_view content) {
  constexpr std::string_view blanks = " \t\r\n";
  const auto first = content.find_first_not_of(blanks);
  if (first == std::string_view::npos)
    return fail(BITNET_INVALID_ARGUMENT,
                "the last message: expected a text to continue, found none");
  const std::string_view wanted =
      content.substr(first, content.find_last_not_of(blanks) - first + 1);
  const auto at = text.bytes().rfind(wanted);
  if (at == std::string::npos)
    return fail(BITNET_UNSUPPORTED,
                "the last message cannot be continued: the model's template does not write it as "
                "it is");
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (text.at(at + i) != origin::message)
      return fail(BITNET_UNSUPPORTED,
                  "the last message cannot be continued: its text is also one of the template");
  return text.part(0, at + wanted.size());
}

}  // namespace

result<marked_text> render(const source& from, const conversation& talk,
                           const rendering_options& how) {
  const std::vector<request_message> messages = adapted(talk, how);
  if (!how.continues) return render_by_name(from, talk, messages, how.answer, how);
  const request_message& last = talk.messages.back();
  if (last.role != "assistant" || !last.calls.empty())
    return fail(BITNET_INVALID_ARGUMENT,
                fmt::format("messages[{}]: expected a text of the assistant to continue, found {}",
                            talk.messages.size() - 1,
                            last.calls.empty() ? "the role '" + last.role + "'" : "calls"));
  if (how.form == own_template) {
    auto text = render_by_name(from, talk, messages, false, how);
    if (!text) return text;
    return cut_behind_last(*text, last.content);
  }
  const std::span before(messages.data(), messages.size() - 1);
  auto text = render_by_name(from, talk, before, true, how);
  if (!text) return text;
  return std::move(text->append(last.content, origin::message));
}

}  // namespace bitnet::chat

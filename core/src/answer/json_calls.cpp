#include <fmt/format.h>

#include "answer/bodies.hpp"
#include "json/raw.hpp"
#include "json/reading.hpp"

namespace bitnet::answer {
namespace {

std::unexpected<std::string> no_call(std::string_view why) {
  return std::unexpected(std::string(why));
}

// Returns the arguments as the JSON text of an object; nullopt if they are no object.
std::optional<std::string> arguments_text(std::string_view raw) {
  if (raw.starts_with('{')) return std::string(raw);
  if (raw == "null" || raw.empty()) return "{}";
  if (!raw.starts_with('"')) return std::nullopt;
  const std::string inner = json::decoded(raw);
  const std::string_view text = json::trimmed(inner);
  if (text.empty()) return "{}";
  if (!text.starts_with('{') || !json::is_whole(text)) return std::nullopt;
  return std::string(text);
}

std::expected<call, std::string> read_call(std::string_view object) {
  if (!object.starts_with('{')) return no_call("expected a call as a JSON object");
  call out;
  std::string_view arguments;
  bool named = false;
  for (const auto& [name, content] : json::members_of(object)) {
    if (name == "function" && content.starts_with('{')) return read_call(content);
    if (name == "name" && content.starts_with('"')) {
      out.name = json::decoded(content);
      named = true;
    }
    if (name == "arguments" || name == "parameters") arguments = content;
  }
  if (!named || out.name.empty()) return no_call("expected a member 'name' that is a text");
  auto text = arguments_text(arguments);
  if (!text) return no_call("expected arguments that are a JSON object");
  out.arguments = *std::move(text);
  return out;
}

}  // namespace

calls_or_reason read_json_calls(std::string_view body) {
  const std::string_view text = json::trimmed(body);
  if (!json::is_whole(text)) return no_call("expected a call as JSON, found no JSON");
  std::vector<call> out;
  const std::vector<std::string_view> objects =
      text.starts_with('[') ? json::elements_of(text) : std::vector{text};
  for (const std::string_view one : objects) {
    auto read = read_call(one);
    if (!read) return std::unexpected(read.error());
    out.push_back(*std::move(read));
  }
  if (out.empty()) return no_call("expected a call, found an empty list");
  return out;
}

std::string_view without_fence(std::string_view body) {
  constexpr std::string_view fence = "```";
  std::string_view text = json::trimmed(body);
  if (!text.starts_with(fence)) return text;
  const auto line = text.find('\n');
  if (line == std::string_view::npos) return text;
  text.remove_prefix(line + 1);
  text = json::trimmed(text);
  if (text.ends_with(fence)) text.remove_suffix(fence.size());
  return json::trimmed(text);
}

}  // namespace bitnet::answer

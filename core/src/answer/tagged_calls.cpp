#include <fmt/format.h>

#include <algorithm>

#include "answer/bodies.hpp"
#include "json/raw.hpp"
#include "json/reading.hpp"

namespace bitnet::answer {
namespace {

// Returns the text between `begins` and the next `ends`; removes all three from the front of
// `rest`.
std::optional<std::string_view> taken(std::string_view& rest, std::string_view begins,
                                      std::string_view ends) {
  if (!rest.starts_with(begins)) return std::nullopt;
  const auto end = rest.find(ends, begins.size());
  if (end == std::string_view::npos) return std::nullopt;
  const auto found = rest.substr(begins.size(), end - begins.size());
  rest.remove_prefix(end + ends.size());
  return found;
}

// Converts Python's words for true, false and null, which templates write, too.
std::string_view as_json_word(std::string_view text) {
  if (text == "True") return "true";
  if (text == "False") return "false";
  return text == "None" ? "null" : text;
}

bool has_type(std::string_view json_text, std::string_view type) {
  const char c = json_text.front();
  if (type == "object") return c == '{';
  if (type == "array") return c == '[';
  if (type == "boolean") return c == 't' || c == 'f';
  if (type == "null") return c == 'n';
  const bool number = c == '-' || (c >= '0' && c <= '9');
  if (type == "integer") return number && json_text.find_first_of(".eE") == std::string_view::npos;
  return type == "number" && number;
}

std::string value_text(std::string_view raw, const parameter* described) {
  const std::string_view text = as_json_word(json::trimmed(raw));
  const bool any = described == nullptr || described->types.empty();
  const bool fits = !text.empty() && json::is_whole(text) &&
                    (any || std::ranges::any_of(described->types, [&](const std::string& type) {
                       return has_type(text, type);
                     }));
  // Without a description Python's words are texts, since they are no JSON.
  if (fits && !(any && text != json::trimmed(raw))) return std::string(text);
  return json::quoted(raw);
}

std::expected<call, std::string> read_call(std::string_view& rest, const tools& known) {
  const auto name = taken(rest, "<function=", ">");
  if (!name || json::trimmed(*name).empty())
    return std::unexpected("expected <function=NAME> and its end");
  call out{std::string(json::trimmed(*name)), "{"};
  const tool* described = find(known, out.name);
  const auto skip_blanks = [&] {
    rest.remove_prefix(std::min(rest.find_first_not_of(" \t\r\n"), rest.size()));
  };
  for (skip_blanks(); !rest.starts_with("</function>"); skip_blanks()) {
    const auto parameter = taken(rest, "<parameter=", ">");
    auto content = taken(rest, "", "</parameter>");
    if (!parameter || parameter->empty() || !content)
      return std::unexpected("expected <parameter=NAME>, a value and </parameter>");
    if (content->starts_with('\n')) content->remove_prefix(1);
    if (content->ends_with('\n')) content->remove_suffix(1);
    const std::string key(*parameter);
    if (out.arguments.size() > 1) out.arguments += ", ";
    out.arguments += json::quoted(key) + ": " +
                     value_text(*content, described == nullptr ? nullptr : described->find(key));
  }
  rest.remove_prefix(std::string_view("</function>").size());
  skip_blanks();
  out.arguments += "}";
  return out;
}

}  // namespace

calls_or_reason read_tagged_calls(std::string_view body, const tools& known) {
  std::string_view rest = json::trimmed(body);
  std::vector<call> out;
  do {
    auto one = read_call(rest, known);
    if (!one) return std::unexpected(one.error());
    out.push_back(*std::move(one));
  } while (!rest.empty());
  return out;
}

}  // namespace bitnet::answer

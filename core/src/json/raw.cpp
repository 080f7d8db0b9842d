#include "json/raw.hpp"

#include <nlohmann/json.hpp>

#include "text/zero_bytes.hpp"

namespace bitnet::json {
namespace {

constexpr std::string_view white_space = " \t\r\n";
constexpr std::size_t deepest = 64;

bool is_shallow(std::string_view text) {
  std::size_t depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > deepest) return false;
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return true;
}

// Removes the value at the front of `rest` and returns its text, up to one of `ends` outside of it.
std::string_view take_value(std::string_view& rest, std::string_view ends) {
  std::size_t depth = 0;
  bool in_string = false;
  std::size_t i = 0;
  for (; i < rest.size(); ++i) {
    const char c = rest[i];
    if (in_string) {
      if (c == '\\') ++i;
      in_string = c != '"';
      continue;
    }
    if (c == '"') in_string = true;
    if (depth == 0 && ends.find(c) != std::string_view::npos) break;
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') --depth;
  }
  const std::string_view taken = trimmed(rest.substr(0, i));
  rest.remove_prefix(i);
  return taken;
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(white_space);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(white_space) - first + 1);
}

bool is_whole(std::string_view text) {
  return !text::zero_byte(text) && is_shallow(text) && nlohmann::json::accept(text);
}

std::vector<std::pair<std::string, std::string_view>> members_of(std::string_view object) {
  std::vector<std::pair<std::string, std::string_view>> out;
  std::string_view rest = trimmed(object);
  rest.remove_prefix(1);
  while (rest.find_first_not_of(white_space) != std::string_view::npos && trimmed(rest) != "}") {
    const std::string_view name = take_value(rest, ":");
    rest.remove_prefix(1);
    const std::string_view content = take_value(rest, ",}");
    rest.remove_prefix(1);
    out.emplace_back(decoded(name), content);
  }
  return out;
}

std::vector<std::string_view> elements_of(std::string_view list) {
  std::vector<std::string_view> out;
  std::string_view rest = trimmed(list);
  rest.remove_prefix(1);
  while (rest.find_first_not_of(white_space) != std::string_view::npos && trimmed(rest) != "]") {
    out.push_back(take_value(rest, ",]"));
    rest.remove_prefix(1);
  }
  return out;
}

std::string decoded(std::string_view string) {
  return nlohmann::json::parse(string).get<std::string>();
}

bool bracket_finder::take(char c) {
  if (in_string()) {
    if (!escaped_ && c == quote_) quote_ = '\0';
    escaped_ = !escaped_ && c == '\\';
    return false;
  }
  if (c == '"' || (single_quotes_ && c == '\'')) quote_ = c;
  if (c == '[' || c == '{' || c == '(') ++depth_;
  if ((c == ']' || c == '}' || c == ')') && depth_ > 0) return --depth_ == 0;
  return false;
}

}  // namespace bitnet::json

#include "library/answer_parts.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

namespace bitnet::host {
namespace {

using nlohmann::json;
using piece_kind = answer_piece::kind;

constexpr std::string_view white_space = " \t\r\n";

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(white_space);
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(white_space) - first + 1);
}

// Bytes at the end of `text` that the rest of `tag` may follow.
std::size_t begun(std::string_view text, std::string_view tag) {
  for (std::size_t n = std::min(text.size(), tag.size() - 1); n > 0; --n)
    if (text.ends_with(tag.substr(0, n))) return n;
  return 0;
}

void add_text(std::vector<answer_piece>& out, part of, std::string_view text) {
  if (!text.empty()) out.push_back({of, piece_kind::text, std::string(text)});
}

// What stands between `begins` and the next `ends`, taken from the front of `rest` with both.
std::optional<std::string_view> taken(std::string_view& rest, std::string_view begins,
                                      std::string_view ends) {
  if (!rest.starts_with(begins)) return std::nullopt;
  const auto end = rest.find(ends, begins.size());
  if (end == std::string_view::npos) return std::nullopt;
  const auto found = rest.substr(begins.size(), end - begins.size());
  rest.remove_prefix(end + ends.size());
  return found;
}

void drop_white_space(std::string_view& rest) {
  rest.remove_prefix(std::min(rest.find_first_not_of(white_space), rest.size()));
}

// <function=NAME>, <parameter=NAME> VALUE </parameter> for each argument, </function>: as Qwen3.5
// calls tools. Values have lines of their own, and stay texts: what they are says only the
// description of the tool, which is not here.
std::optional<json> tagged_call(std::string_view rest) {
  const auto name = taken(rest, "<function=", ">");
  if (!name || name->empty()) return std::nullopt;
  json arguments = json::object();
  for (drop_white_space(rest); !rest.starts_with("</function>"); drop_white_space(rest)) {
    const auto parameter = taken(rest, "<parameter=", ">");
    auto value = taken(rest, "", "</parameter>");
    if (!parameter || parameter->empty() || !value) return std::nullopt;
    if (value->starts_with('\n')) value->remove_prefix(1);
    if (value->ends_with('\n')) value->remove_suffix(1);
    arguments[std::string(*parameter)] = *value;
  }
  if (rest != "</function>") return std::nullopt;
  return json{{"name", *name}, {"arguments", std::move(arguments)}};
}

// The text alone where it is no call, or is JSON that nobody should build.
json call_json(const std::string& text) {
  if (auto call = tagged_call(text)) return *std::move(call);
  constexpr int deepest = 64;
  bool too_deep = false;
  json call = json::parse(
      text,
      [&](int depth, json::parse_event_t, json&) {
        too_deep = too_deep || depth > deepest;
        return !too_deep;
      },
      false);
  const bool is_call =
      !too_deep && call.is_object() && call.contains("name") && call["name"].is_string();
  if (!is_call) return {{"text", text}};
  return {{"name", call["name"]}, {"arguments", call.value("arguments", json::object())}};
}

}  // namespace

// Whether the answer begins with a <think> is known when its first word is.
bool answer_splitter::begin(std::string_view& rest, bool at_end, std::vector<answer_piece>& out) {
  const auto first = std::min(rest.find_first_not_of(white_space), rest.size());
  const std::string_view word = rest.substr(first);
  const bool thinks = word.starts_with(thinking_begins);
  if (!thinks && !at_end && thinking_begins.starts_with(word)) return false;
  at_start_ = false;
  if (!thinks) return true;
  now_ = part::reasoning;
  out.push_back({now_, piece_kind::begins, ""});
  rest.remove_prefix(first + thinking_begins.size());
  return true;
}

// Takes what is known from `rest`; false where more has to come first.
bool answer_splitter::split_once(std::string_view& rest, bool at_end,
                                 std::vector<answer_piece>& out) {
  if (at_start_) return begin(rest, at_end, out);
  const std::string_view tag = now_ == part::content     ? call_begins
                               : now_ == part::reasoning ? thinking_ends
                                                         : call_ends;
  const auto found = rest.find(tag);
  if (found == std::string_view::npos) {
    const std::size_t known = rest.size() - (at_end ? 0 : begun(rest, tag));
    add_text(out, now_, rest.substr(0, known));
    rest.remove_prefix(known);
    return false;
  }
  add_text(out, now_, rest.substr(0, found));
  rest.remove_prefix(found + tag.size());
  if (now_ == part::content) {
    now_ = part::tool_call;
    out.push_back({now_, piece_kind::begins, ""});
  } else {
    out.push_back({std::exchange(now_, part::content), piece_kind::ends, ""});
  }
  return true;
}

std::vector<answer_piece> answer_splitter::split(bool at_end) {
  std::vector<answer_piece> out;
  std::string_view rest = pending_;
  while (split_once(rest, at_end, out)) {
  }
  pending_.erase(0, pending_.size() - rest.size());
  return out;
}

std::vector<answer_piece> answer_splitter::take(std::string_view text) {
  pending_ += text;
  return split(false);
}

std::vector<answer_piece> answer_splitter::finish() {
  return split(true);
}

answer split_answer(std::string_view text) {
  answer out;
  const auto add = [&](const std::vector<answer_piece>& pieces) {
    for (const answer_piece& one : pieces) {
      if (one.of == part::tool_call && one.what == piece_kind::begins) out.calls.emplace_back();
      std::string& to = one.of == part::content     ? out.content
                        : one.of == part::reasoning ? out.reasoning
                                                    : out.calls.back();
      to += one.text;
    }
  };
  answer_splitter splitter;
  add(splitter.take(text));
  add(splitter.finish());
  out.content = trimmed(out.content);
  out.reasoning = trimmed(out.reasoning);
  for (std::string& call : out.calls) call = trimmed(call);
  return out;
}

json message_json(const answer& said) {
  json out = {{"role", "assistant"}, {"content", said.content}};
  if (!said.reasoning.empty()) out["reasoning_content"] = said.reasoning;
  for (const std::string& call : said.calls) out["tool_calls"].push_back(call_json(call));
  return out;
}

}  // namespace bitnet::host

#include "openai/system_lines.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <vector>

#include "openai/raw_member.hpp"

namespace bitnet::host::openai {
namespace {

using nlohmann::json;

constexpr std::string_view billing_header = "x-anthropic-billing-header:";
constexpr std::size_t longest_date_line = 120;  // bytes

bool is_digit_at(std::string_view text, std::size_t at) {
  return at < text.size() && text[at] >= '0' && text[at] <= '9';
}

// Whether the text has a year from 1900 to 2099, or a time such as 9:30.
bool has_date_or_time(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (!is_digit_at(text, i) || (i > 0 && is_digit_at(text, i - 1))) continue;
    std::size_t n = 1;
    while (is_digit_at(text, i + n)) ++n;
    const std::string_view digits = text.substr(i, n);
    if (n == 4 && (digits.starts_with("19") || digits.starts_with("20"))) return true;
    const bool is_time = i + n < text.size() && text[i + n] == ':' &&
                         is_digit_at(text, i + n + 1) && is_digit_at(text, i + n + 2);
    if (n <= 2 && is_time) return true;
  }
  return false;
}

std::string_view without_blanks(std::string_view text) {
  constexpr std::string_view blanks = " \t\r";
  const auto begin = std::min(text.find_first_not_of(blanks), text.size());
  text.remove_prefix(begin);
  return text.substr(0, text.find_last_not_of(blanks) + 1);
}

// The line in lower case, without Markdown's marks, and with ASCII apostrophes.
std::string plain_line(std::string_view line) {
  constexpr std::string_view apostrophe = "\xe2\x80\x99";
  std::string out;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (line.substr(i).starts_with(apostrophe)) {
      out += '\'';
      i += apostrophe.size() - 1;
    } else if (c != '*' && c != '_' && c != '`') {
      out += c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
    }
  }
  return out;
}

bool take(std::string_view& text, std::string_view what) {
  if (!text.starts_with(what)) return false;
  text.remove_prefix(what.size());
  return true;
}

// Removes date lines from `text` and appends them to `moved`, each with a newline.
void take_date_lines(std::string& text, std::string& moved) {
  std::string rest;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    const std::string_view line = std::string_view(text).substr(at, end - at);
    if (is_date_line(line.substr(0, line.find('\n'))))
      moved.append(line).append(line.ends_with('\n') ? "" : "\n");
    else
      rest += line;
    at = end;
  }
  text = std::move(rest);
}

void drop_header(std::string& text) {
  if (!text.starts_with(billing_header)) return;
  text.erase(0, std::min(text.find('\n'), text.size() - 1) + 1);
}

// Appends lines to what is there.
void append_lines(std::string& to, std::string lines) {
  lines.pop_back();  // the last newline
  if (!to.empty() && !to.ends_with('\n')) to += '\n';
  to += lines;
}

void settle_text(std::string& text, bool is_first, const generation_wish& how, std::string& moved) {
  if (is_first && !how.keeps_billing_header) drop_header(text);
  if (how.moves_date_lines) take_date_lines(text, moved);
}

void settle_parts(json& parts, const generation_wish& how, std::string& moved) {
  bool is_first = true;
  std::string* last = nullptr;
  json out = json::array();
  for (json& one : parts) {
    const auto found = one.is_object() ? one.find("text") : one.end();
    if (one.is_object() && found != one.end() && found->is_string()) {
      auto& text = found->get_ref<std::string&>();
      const bool had_text = !text.empty();
      settle_text(text, is_first, how, moved);
      is_first = false;
      if (had_text && text.empty()) continue;
    }
    out.push_back(std::move(one));
  }
  parts = std::move(out);
  if (moved.empty()) return;
  for (json& one : parts)
    if (one.is_object() && one.contains("text") && one["text"].is_string())
      last = one["text"].get_ptr<std::string*>();
  if (last == nullptr) {
    parts.push_back({{"type", "text"}, {"text", ""}});
    last = parts.back()["text"].get_ptr<std::string*>();
  }
  append_lines(*last, std::exchange(moved, ""));
}

bool is_system(const json& message) {
  const auto role = message.is_object() ? message.find("role") : message.end();
  return message.is_object() && role != message.end() &&
         (*role == "system" || *role == "developer") && message.contains("content");
}

bool is_empty(const json& content) {
  return content.empty() || (content.is_string() && content.get_ref<const std::string&>().empty());
}

}  // namespace

bool is_date_line(std::string_view line) {
  if (line.size() > longest_date_line) return false;
  const std::string plain = plain_line(line);
  std::string_view text = without_blanks(plain);
  if (take(text, "-")) text = without_blanks(text);
  (void)take(text, "the ");
  struct way {
    std::string_view subject;
    bool takes_is, takes_colon;
  };
  constexpr std::array ways = {way{"today's date", true, true},
                               way{"todays date", true, true},
                               way{"today", true, false},
                               way{"current date and time", true, true},
                               way{"current date/time", true, true},
                               way{"current datetime", true, true},
                               way{"current date", true, true},
                               way{"current time", true, true},
                               way{"date and time", false, true},
                               way{"date", false, true}};
  for (const way& one : ways) {
    std::string_view rest = text;
    if (!take(rest, one.subject)) continue;
    if ((one.takes_colon && take(rest, ":")) || (one.takes_is && take(rest, " is")))
      return has_date_or_time(rest);
  }
  return false;
}

bool settle_system(json& content, const generation_wish& how) {
  if (how.keeps_billing_header && !how.moves_date_lines) return false;
  const json before = content;
  std::string moved;
  if (content.is_string()) {
    auto& text = content.get_ref<std::string&>();
    settle_text(text, true, how, moved);
    if (!moved.empty()) append_lines(text, std::move(moved));
  } else if (content.is_array()) {
    settle_parts(content, how, moved);
  }
  return content != before;
}

void settle_messages(json& messages, const generation_wish& how) {
  for (auto at = messages.begin(); at != messages.end() && is_system(*at);) {
    json& content = (*at)["content"];
    if (settle_system(content, how) && is_empty(content))
      at = messages.erase(at);
    else
      ++at;
  }
}

std::string settled_messages(std::string_view messages, const generation_wish& how) {
  if (how.keeps_billing_header && !how.moves_date_lines) return std::string(messages);
  std::string out;
  bool has_others = false, has_changed = false;
  for (const std::string_view written : raw_elements(messages)) {
    std::string text(written);
    json one = has_others ? json() : json::parse(written, nullptr, false);
    has_others = has_others || !is_system(one);
    if (!has_others && settle_system(one["content"], how)) {
      has_changed = true;
      if (is_empty(one["content"])) continue;
      text = one.dump();
    }
    out += (out.empty() ? "[" : ",") + text;
  }
  // If every message was dropped, no chat would remain, so the text stays unchanged.
  return has_changed && !out.empty() ? out + "]" : std::string(messages);
}

}  // namespace bitnet::host::openai

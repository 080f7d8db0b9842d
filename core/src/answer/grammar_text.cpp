#include "answer/grammar_text.hpp"

#include <fmt/format.h>

#include <vector>

namespace bitnet::answer {
namespace {

std::string escaped(char c, bool in_class) {
  switch (c) {
    case '\n':
      return "\\n";
    case '\t':
      return "\\t";
    case '\r':
      return "\\r";
    case '\\':
      return "\\\\";
    case '"':
      return in_class ? "\"" : "\\\"";
    case '[':
    case ']':
    case '-':
    case '^':
      return in_class ? std::string("\\") + c : std::string(1, c);
    default:
      return std::string(1, c);
  }
}

// The state of the search for `tag` after `matched` of its bytes and then `c`.
std::size_t next_state(std::string_view tag, std::size_t matched, char c) {
  const std::string text = std::string(tag.substr(0, matched)) + c;
  for (std::size_t n = std::min(text.size(), tag.size()); n > 0; --n)
    if (std::string_view(text).ends_with(tag.substr(0, n))) return n;
  return 0;
}

}  // namespace

std::string literal(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) out += escaped(c, false);
  return out + "\"";
}

std::string until_rules(std::string_view rule, std::string_view tag) {
  std::string letters;  // distinct letters of the tag
  for (const char c : tag)
    if (letters.find(c) == std::string::npos) letters += c;
  const auto state = [&](std::size_t n) {
    return n == 0 ? std::string(rule) : fmt::format("{}-{}", rule, n);
  };
  std::string others = "[^";
  for (const char c : letters) others += escaped(c, true);
  others += "]";
  std::string out;
  for (std::size_t matched = 0; matched < tag.size(); ++matched) {
    out += fmt::format("{} ::= {} {}", state(matched), others, state(0));
    for (const char c : letters) {
      const std::size_t next = next_state(tag, matched, c);
      out += fmt::format(" | {}", literal(std::string_view(&c, 1)));
      if (next < tag.size()) out += " " + state(next);
    }
    out += "\n";
  }
  return out;
}

std::string_view json_rules() {
  return R"(value ::= object | list | text | number | "true" | "false" | "null"
object ::= "{" blank (member ("," blank member)*)? "}"
member ::= text ":" blank value blank
list ::= "[" blank (value blank ("," blank value blank)*)? "]"
text ::= "\"" ([^"\\\x00-\x1f] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4}))* "\""
number ::= "-"? ("0" | [1-9] [0-9]{0,18}) ("." [0-9]{1,18})? ([eE] [-+]? [0-9]{1,2})?
blank ::= [ \n]?
)";
}

std::string_view python_rules() {
  return R"(arguments ::= (argument (", " argument)*)?
argument ::= [a-zA-Z_] [a-zA-Z0-9_]{0,63} "=" literal
literal ::= dict | list | text | number | "True" | "False" | "None"
dict ::= "{" (entry (", " entry)*)? "}"
entry ::= text ": " literal
list ::= "[" (literal (", " literal)*)? "]"
text ::= "\"" ([^"\\\x00-\x1f] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4}))* "\""
number ::= "-"? ("0" | [1-9] [0-9]{0,18}) ("." [0-9]{1,18})? ([eE] [-+]? [0-9]{1,2})?
)";
}

std::string call_rules(const call_choice& which, std::string_view begin, std::string_view middle,
                       std::string_view end, std::string_view any) {
  std::string choice;
  std::string rules;
  for (std::size_t i = 0; i < which.all->size(); ++i) {
    const tool& one = (*which.all)[i];
    if (!which.only.empty() && one.name != which.only) continue;
    const bool is_bound = i < which.bound.size() && !which.bound[i].empty();
    if (!choice.empty()) choice += " | ";
    choice += literal(one.name + std::string(middle)) + " ";
    choice += is_bound ? fmt::format("arguments-{}", i) : std::string(any);
    if (is_bound) rules += which.bound[i];
  }
  return fmt::format("call ::= {} ({}) {}\n{}", literal(begin), choice, literal(end), rules);
}

}  // namespace bitnet::answer

// Part of rule_writer: characters, strings and numbers.
#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "schema/rule_writer.hpp"

namespace bitnet::schema {
namespace {

using grammar::code_range;

// Characters that a string has unescaped; all others have a backslash.
const grammar::character_class plain{{0x20, 0x21}, {0x23, 0x5B}, {0x5D, grammar::last_character}};

struct escape {
  char32_t of;
  char letter;
};
constexpr escape escapes[] = {{'"', '"'},  {'\\', '\\'}, {0x08, 'b'}, {0x0C, 'f'},
                              {0x0A, 'n'}, {0x0D, 'r'},  {0x09, 't'}};

bool is_control(char32_t c) {
  return c < 0x20;
}

std::string escaped(char32_t c) {
  for (const escape& e : escapes)
    if (e.of == c) return {'\\', e.letter};
  return is_control(c) ? fmt::format("\\u{:04x}", static_cast<uint32_t>(c)) : std::string();
}

}  // namespace

void rule_writer::write_text(uint32_t rule, const text_automaton& of, bool quoted) {
  if (of.empty() || to_.any()) return;
  sequence text;
  if (quoted) add_literal(text, "\"");
  text.push_back(call(rules_of(of, quoted)));
  add(rule, text);
}

// Makes a rule for each state, and returns the number of the first. `quoted`: in a string, with its
// end.
uint32_t rule_writer::rules_of(const text_automaton& of, bool quoted) {
  const auto first = static_cast<uint32_t>(out_.rules.size());
  if (!has_room(of.states.size() * 4)) return 0;
  for (std::size_t i = 0; i < of.states.size(); ++i) new_rule();
  for (uint32_t i = 0; i < of.states.size() && !to_.any(); ++i) {
    add_edges(first + i, of.states[i], first, quoted);
    if (!of.states[i].whole) continue;
    sequence end;
    if (quoted) add_literal(end, "\"");
    add(first + i, end);
  }
  return first;
}

void rule_writer::add_edges(uint32_t from, const text_automaton::state& state, uint32_t first,
                            bool quoted) {
  std::map<uint32_t, std::vector<code_range>> by_target;
  for (const auto& e : state.edges) by_target[first + e.to].push_back(e.on);
  for (const auto& [to, on] : by_target) {
    if (quoted) {
      add_characters(from, on, to);
    } else if (grammar::character_class of = grammar::class_of(on, false); !of.empty()) {
      add(from, {characters(of), call(to)});  // some edges have only surrogates
    }
  }
}

// Adds the characters of a class, as they are written in a string.
void rule_writer::add_characters(uint32_t from, const std::vector<code_range>& of, uint32_t to) {
  grammar::character_class themselves, letters;
  for (const code_range& r : of) {
    for (const code_range& p : plain) {
      const code_range both{std::max(r.first, p.first), std::min(r.last, p.last)};
      if (both.first <= both.last) themselves.push_back(both);
    }
    for (const escape& e : escapes)
      if (r.first <= e.of && e.of <= r.last)
        letters.push_back({static_cast<char32_t>(e.letter), static_cast<char32_t>(e.letter)});
    // Other control characters have an escape of six characters, and only they may use one: a model
    // that begins \u00e9 would otherwise be led to a control character.
    if (r.first == r.last && is_control(r.first) && escaped(r.first).size() == 6) {
      sequence text;
      add_literal(text, escaped(r.first));
      text.push_back(call(to));
      add(from, text);
    }
  }
  themselves = grammar::class_of(std::move(themselves), false);
  letters = grammar::class_of(std::move(letters), false);
  if (!themselves.empty()) add(from, {characters(themselves), call(to)});
  if (!letters.empty()) add(from, {characters({{'\\', '\\'}}), characters(letters), call(to)});
}

grammar::element rule_writer::characters(const grammar::character_class& of) {
  return {grammar::element::kind::character, classes_.number_of(grammar::class_of(of, false))};
}

void rule_writer::add_literal(sequence& to, std::string_view text) {
  for (const char32_t c : characters_of(text)) to.push_back(characters({{c, c}}));
}

void rule_writer::add_quoted(sequence& to, std::string_view text) {
  add_literal(to, "\"");
  for (const char32_t c : characters_of(text)) {
    const std::string other = escaped(c);
    if (other.empty())
      to.push_back(characters({{c, c}}));
    else
      add_literal(to, other);
  }
  add_literal(to, "\"");
}

void rule_writer::add_separator(sequence& to, char c) {
  add_literal(to, std::string_view(&c, 1));
  to.push_back(call(blank_));
}

uint32_t rule_writer::new_rule() {
  const auto number = static_cast<uint32_t>(out_.rules.size());
  if (has_room(1)) out_.rules.push_back({.name = "value", .named_by = number, .where = {}});
  return to_.any() ? 0 : number;
}

void rule_writer::add(uint32_t rule, const sequence& alternative) {
  if (!has_room(alternative.size() + 1)) return;
  out_.rules[rule].starts.push_back(static_cast<uint32_t>(out_.elements.size()));
  out_.elements.insert(out_.elements.end(), alternative.begin(), alternative.end());
  out_.elements.emplace_back();
}

bool rule_writer::has_room(uint64_t n) {
  if (to_.any()) return false;
  if (out_.elements.size() + out_.rules.size() + n <= grammar::most_elements) return true;
  to_.unsupported(
      fmt::format("the grammar of the schema has more than {} parts up to here; make "
                  "lengths, counts and lists smaller",
                  grammar::most_elements));
  return false;
}

}  // namespace bitnet::schema

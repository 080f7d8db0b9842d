// Part of rule_writer: the arguments of calls, and strings that the notation excludes.
#include <fmt/core.h>

#include "schema/pattern.hpp"
#include "schema/rule_writer.hpp"

namespace bitnet::schema {
namespace {

// A pattern that only `text` matches.
std::string pattern_of(std::string_view text) {
  std::string out;
  for (const char32_t c : characters_of(text))
    out += fmt::format("\\u{{{:x}}}", static_cast<uint32_t>(c));
  return out;
}

}  // namespace

// All strings, or only those without texts that end the call for its reader.
const text_automaton& rule_writer::allowed() {
  if (!allowed_ && how_.never.empty()) allowed_ = any_text();
  if (!allowed_) {
    std::string pattern;
    for (const std::string_view one : how_.never)
      pattern += (pattern.empty() ? "" : "|") + pattern_of(one);
    allowed_ = all_but(texts_of_pattern(pattern, matching::found, "#", to_));
  }
  return *allowed_;
}

const text_automaton& rule_writer::number_limit() {
  if (!number_limit_) number_limit_ = texts_of_pattern(how_.numbers, matching::whole, "#", to_);
  return *number_limit_;
}

void rule_writer::write(uint32_t rule, const strings& of, const std::optional<std::string>& bare) {
  text_automaton texts = texts_of(of, to_);
  if (!how_.never.empty()) texts = common(texts, allowed(), to_);
  if (bare) {
    const std::string misread = how_.arguments->misread(*bare);
    if (!misread.empty())
      texts = common(texts, all_but(texts_of_pattern(misread, matching::whole, "#", to_)), to_);
  }
  write_text(rule, texts, !bare);
}

void rule_writer::add_argument(sequence& to, const property& p, const argument_signs& signs) {
  const text_automaton names = texts_of_pattern(signs.names, matching::whole, "#", to_);
  if (!names.accepts(characters_of(p.name)))
    return to_.unsupported(
        "the name of a property cannot be written in the form of this model's "
        "calls; use letters, digits and '_' in it");
  add_literal(to, signs.before_name);
  add_literal(to, p.name);
  finish_argument(to, signs, value_rule(p.name, p.is, signs));
}

uint32_t rule_writer::value_rule(const std::string& name, const node& is,
                                 const argument_signs& signs) {
  if (!signs.bare_texts) return rule_of(is);
  const uint32_t rule = new_rule();
  todo_.push_back({rule, is, name});
  return rule;
}

void rule_writer::finish_argument(sequence& to, const argument_signs& signs, uint32_t value) {
  add_literal(to, signs.before_value);
  to.push_back(call(value));
  add_literal(to, signs.behind_value);
}

}  // namespace bitnet::schema

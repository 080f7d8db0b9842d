#include "grammar/gbnf.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <utility>

#include "base/utf8.hpp"
#include "grammar/character_classes.hpp"
#include "grammar/check.hpp"
#include "grammar/text_reader.hpp"

namespace bitnet::grammar {
namespace {

constexpr uint32_t no_end = std::numeric_limits<uint32_t>::max();

using sequence = std::vector<element>;

class parser {
 public:
  explicit parser(std::string_view text) : in_(text) {}

  result<rule_set> run() {
    out_.elements.emplace_back();  // the end of the text, behind the root
    in_.skip_blank(true);
    while (!in_.at_end()) {
      definition();
      in_.skip_blank(true);
    }
    if (!in_.trouble()) check_names();
    if (const auto& trouble = in_.trouble()) return std::unexpected(*trouble);
    if (auto ok = check_rules(out_); !ok) return std::unexpected(std::move(ok.error()));
    return std::move(out_);
  }

 private:
  struct definition_of {
    uint32_t rule;
    bool is_defined;
    text_position where;  // of the definition, or of the first use
  };

  // name ::= alternatives, to the end of the line.
  void definition() {
    const text_position begin = in_.where();
    std::string name = in_.take_name();
    if (name.empty()) return in_.wrong("expected the name of a rule, found " + in_.found());
    in_.skip_blank(false);
    if (!in_.skip("::="))
      return in_.wrong(fmt::format("expected '::=' behind the name '{}', found {}",
                                   shown_name(name), in_.found()));
    definition_of& known = named(name, begin);
    if (known.is_defined)
      return in_.wrong(begin,
                       fmt::format("the rule '{}' is defined on line {} already; join the two by "
                                   "'|', or give one another name",
                                   shown_name(name), known.where.line));
    known.is_defined = true;
    known.where = out_.rules[known.rule].where = begin;
    within_ = known.rule;
    in_.skip_blank(true);
    alternatives(known.rule, 0);
    if (!in_.at_line_end())
      in_.wrong(fmt::format(
          "expected a literal, a class, a group, a rule, '|' or the end of the line, found {}",
          in_.found()));
  }

  void alternatives(uint32_t rule, uint32_t depth) {
    do {
      in_.skip_blank(true);
      sequence items;
      if (!item(items, depth))
        return in_.wrong(
            fmt::format("expected a literal, a class, a group or a rule, found {}; "
                        "write \"\" for nothing",
                        in_.found()));
      while (item(items, depth)) {
      }
      waiting_ -= items.size();
      add_alternative(rule, items);
    } while (at_bar(depth));
  }

  // The next alternative may be on a line of its own, which begins with the bar.
  bool at_bar(uint32_t depth) {
    const text_reader before = in_;
    in_.skip_blank(true);
    if (in_.skip('|')) return true;
    if (depth == 0) in_.go_back(before);
    return false;
  }

  bool item(sequence& to, uint32_t depth) {
    sequence one;
    if (in_.at('"')) {
      literal(one);
    } else if (in_.at('[')) {
      one.push_back(characters(class_in_brackets()));
    } else if (in_.skip('.')) {
      one.push_back(characters(class_of({}, true)));
    } else if (in_.at('(')) {
      group(one, depth);
    } else {
      const text_position begin = in_.where();
      const std::string name = in_.take_name();
      if (name.empty()) return false;
      one.push_back({element::kind::rule, named(name, begin).rule});
    }
    in_.skip_blank(depth > 0);
    while (repetition(one)) in_.skip_blank(depth > 0);
    if (!in_.trouble() && !has_room(one.size(), in_.where())) return false;
    to.insert(to.end(), one.begin(), one.end());
    waiting_ += one.size();
    return !in_.trouble();
  }

  element characters(const character_class& of) {
    return {element::kind::character, classes_.number_of(of)};
  }

  void literal(sequence& to) {
    const text_position begin = in_.where();
    in_.take();
    while (!in_.at('"')) {
      if (in_.at_line_end())
        return in_.wrong(begin,
                         "the literal that begins here has no end on its line; expected '\"', "
                         "and \\n for a line end");
      const char32_t c = in_.at('\\') ? in_.take_escape(false) : in_.take();
      to.push_back(characters({{c, c}}));
    }
    in_.take();
  }

  character_class class_in_brackets() {
    const text_position begin = in_.where();
    in_.take();
    const bool negated = in_.skip('^');
    character_class ranges;
    const auto next = [&]() -> char32_t {
      if (in_.at_line_end())
        in_.wrong(begin,
                  "the class that begins here has no end on its line; expected ']', "
                  "and \\] for a bracket in it");
      return in_.at('\\') ? in_.take_escape(true) : in_.take();
    };
    while (!in_.at(']') && !in_.trouble()) {
      const text_position at = in_.where();
      const char32_t first = next();
      char32_t last = first;
      const text_reader before = in_;
      if (in_.skip('-') && !in_.at(']'))
        last = next();
      else
        in_.go_back(before);
      if (last < first)
        in_.wrong(at, fmt::format("the range from U+{:04X} to U+{:04X} runs backwards; write the "
                                  "lower character first, or \\- for the character itself",
                                  static_cast<uint32_t>(first), static_cast<uint32_t>(last)));
      ranges.push_back({first, last});
    }
    in_.skip(']');
    character_class out = class_of(std::move(ranges), negated);
    if (out.empty())
      in_.wrong(begin,
                "the class that begins here has no character in it, so that nothing "
                "matches; write '.' for any character");
    return out;
  }

  void group(sequence& to, uint32_t depth) {
    const text_position begin = in_.where();
    in_.take();
    if (depth == deepest_groups)
      return in_.wrong(begin,
                       fmt::format("groups lie more than {} deep in each other; give the "
                                   "inner ones names as rules",
                                   deepest_groups),
                       BITNET_UNSUPPORTED);
    const uint32_t rule = new_rule();
    alternatives(rule, depth + 1);
    if (!in_.trouble() && !in_.skip(')'))
      in_.wrong(fmt::format("expected ')' for the '(' of line {}, column {}, found {}", begin.line,
                            begin.column, in_.found()));
    to.push_back({element::kind::rule, rule});
  }

  // Reads the repetition behind an item, and writes it out in the item's place.
  bool repetition(sequence& of) {
    const text_position begin = in_.where();
    uint32_t least = 0;
    uint32_t most = no_end;
    if (in_.skip('+')) {
      least = 1;
    } else if (in_.skip('?')) {
      most = 1;
    } else if (in_.at('{')) {
      counts(least, most);
    } else if (!in_.skip('*')) {
      return false;
    }
    if (!in_.trouble()) repeat(of, least, most, begin);
    return !in_.trouble();
  }

  // {m}, {m,} or {m,n}
  void counts(uint32_t& least, uint32_t& most) {
    const text_position begin = in_.where();
    in_.take();
    const auto number = [&] {
      in_.skip_blank(false);
      const auto n = in_.take_number();
      if (!n)
        in_.wrong("expected a number of repetitions, as in {2}, {2,} or {2,5}, found " +
                  in_.found());
      in_.skip_blank(false);
      return n.value_or(0);
    };
    least = most = number();
    if (in_.skip(',')) {
      in_.skip_blank(false);
      most = in_.at('}') ? no_end : number();
    }
    if (!in_.skip('}'))
      return in_.wrong("expected ',' or '}' of a repetition, found " + in_.found());
    if (most < least)
      in_.wrong(begin, fmt::format("the repetition has at least {} and at most {}; write the lower "
                                   "number first",
                                   least, most));
    if (std::max(least, most == no_end ? 0 : most) > most_repetitions)
      in_.wrong(begin,
                fmt::format("the repetition is of {}; at most {} are possible",
                            most == no_end ? least : most, most_repetitions),
                BITNET_UNSUPPORTED);
  }

  void repeat(sequence& of, uint32_t least, uint32_t most, text_position where) {
    if (of.empty()) return;  // nothing, however often
    element one = of.front();
    if (of.size() > 1) {
      one = {element::kind::rule, new_rule()};
      add_alternative(one.index, of);
    }
    const uint64_t written = most == no_end ? least : most;
    if (!has_room(written * 3, where)) return;
    of.assign(least, one);
    if (most == no_end) {
      const element rest{element::kind::rule, new_rule()};
      add_alternative(rest.index, {one, rest});
      add_alternative(rest.index, {});
      of.push_back(rest);
      return;
    }
    // Each optional item is a rule with those behind it, which may be missing too.
    sequence rest;
    for (uint32_t i = least; i < most; ++i) {
      const uint32_t rule = new_rule();
      rest.insert(rest.begin(), one);
      add_alternative(rule, rest);
      add_alternative(rule, {});
      rest.assign(1, {element::kind::rule, rule});
    }
    of.insert(of.end(), rest.begin(), rest.end());
  }

  bool has_room(uint64_t n, text_position where) {
    if (out_.elements.size() + out_.rules.size() + waiting_ + n <= most_elements) return true;
    in_.wrong(where,
              fmt::format("the grammar has more than {} parts up to here, repetitions written "
                          "out; make it smaller",
                          most_elements),
              BITNET_UNSUPPORTED);
    return false;
  }

  void add_alternative(uint32_t rule, const sequence& items) {
    if (!has_room(items.size() + 1, in_.where())) return;
    out_.rules[rule].starts.push_back(static_cast<uint32_t>(out_.elements.size()));
    out_.elements.insert(out_.elements.end(), items.begin(), items.end());
    out_.elements.emplace_back();
  }

  uint32_t new_rule() {
    out_.rules.push_back({.name = {}, .named_by = within_, .where = out_.rules[within_].where});
    return static_cast<uint32_t>(out_.rules.size() - 1);
  }

  definition_of& named(const std::string& name, text_position where) {
    const auto number = static_cast<uint32_t>(out_.rules.size());
    const auto [at, is_new] = names_.try_emplace(name, definition_of{number, false, where});
    if (is_new) out_.rules.push_back({.name = name, .named_by = number, .where = where});
    return at->second;
  }

  void check_names() {
    const definition_of* first = nullptr;  // of the names that are used and not defined
    for (const auto& [name, one] : names_)
      if (!one.is_defined && (first == nullptr || one.rule < first->rule)) first = &one;
    if (first != nullptr)
      return in_.wrong(
          first->where,
          fmt::format("the rule '{0}' is used here and defined nowhere; define it, as in {0} "
                      "::= \"text\", or mend the name",
                      shown_name(out_.rules[first->rule].name)));
    const auto root = names_.find("root");
    if (root == names_.end())
      return in_.wrong("there is no rule 'root', with which every text begins; add root ::= ...");
    out_.root = root->second.rule;
  }

  text_reader in_;
  rule_set out_;
  class_list classes_{out_.classes};
  std::unordered_map<std::string, definition_of> names_;
  uint32_t within_ = 0;      // the rule that is being defined
  std::size_t waiting_ = 0;  // parts of alternatives that are not whole yet
};

}  // namespace

result<rule_set> parse_gbnf(std::string_view text) {
  if (text.size() > longest_grammar)
    return fail(BITNET_UNSUPPORTED, fmt::format("the grammar has {} bytes; at most {} are possible",
                                                text.size(), longest_grammar));
  if (const auto broken = first_invalid_utf8(text))
    return fail(BITNET_INVALID_ARGUMENT,
                fmt::format("the grammar is no UTF-8 at byte {}; convert it to UTF-8", *broken));
  return parser(text).run();
}

}  // namespace bitnet::grammar

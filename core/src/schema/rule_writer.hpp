#pragma once
// Writes forms as rules of a grammar for JSON texts. A rule stands for the values that are valid by
// the same schemas, so that a schema may contain itself.
//
// Form  One text for each value: no white space but one optional blank behind ':' and ','; members
//       in the order of forms; characters unescaped where JSON allows it.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/character_classes.hpp"
#include "grammar/rules.hpp"
#include "schema/form_reader.hpp"
#include "schema/notation.hpp"

namespace bitnet::schema {

class rule_writer {
 public:
  rule_writer(form_reader& forms, faults& to, notation how = {})
      : forms_(forms), to_(to), how_(std::move(how)) {}
  // Returns no rules, and sets a fault, if no value is valid or a bound is passed.
  grammar::rule_set run(const node& root);
  // Only for objects: their members are written as the notation writes arguments.
  grammar::rule_set run_arguments(const node& root);

 private:
  using sequence = std::vector<grammar::element>;

  struct counted {         // how many members there are, as far as it matters
    uint32_t least, most;  // most: UINT32_MAX without a bound
    uint32_t tracked;      // larger counts are treated as this one
  };

  struct pending {
    uint32_t rule;
    node of;
    std::optional<std::string> bare = {};  // the argument whose strings stand without quotes
  };

  void begin();
  grammar::rule_set finish();
  uint32_t rule_of(const node& of);
  void write(uint32_t rule, const choice& one);  // `one` is no string
  void write(uint32_t rule, const booleans& of);
  void write(uint32_t rule, const arrays& of);
  void write(uint32_t rule, const strings& of, const std::optional<std::string>& bare);
  void write(uint32_t rule, const objects& of, const argument_signs* signs = nullptr);
  std::optional<uint32_t> member_rule(const objects& of, const property& p,
                                      const argument_signs* signs);
  void add_argument(sequence& to, const property& p, const argument_signs& signs);
  uint32_t value_rule(const std::string& name, const node& is, const argument_signs& signs);
  void finish_argument(sequence& to, const argument_signs& signs, uint32_t value);
  const text_automaton& allowed();  // strings that the notation allows
  const text_automaton& number_limit();
  void write_text(uint32_t rule, const text_automaton& of, bool quoted);
  uint32_t rules_of(const text_automaton& of, bool quoted);
  void add_edges(uint32_t from, const text_automaton::state& state, uint32_t first, bool quoted);
  void add_characters(uint32_t from, const std::vector<grammar::code_range>& of, uint32_t to);
  std::vector<uint32_t> other_members(const objects& of, const argument_signs* signs);
  void write_members(uint32_t first, const objects& of, const std::vector<uint32_t>& listed,
                     const std::vector<uint32_t>& others, const counted& how,
                     const argument_signs* signs);
  bool can_count(const objects& of);

  grammar::element characters(const grammar::character_class& of);
  void add_literal(sequence& to, std::string_view text);  // without quotes
  void add_quoted(sequence& to, std::string_view text);   // as a JSON string
  void add_separator(sequence& to, char c);
  grammar::element call(uint32_t rule) const { return {grammar::element::kind::rule, rule}; }
  uint32_t new_rule();
  void add(uint32_t rule, const sequence& alternative);
  bool has_room(uint64_t n);

  form_reader& forms_;
  faults& to_;
  grammar::rule_set out_;
  grammar::class_list classes_{out_.classes};
  std::map<std::vector<uint32_t>, uint32_t> rules_;  // by the numbers of the schemas
  std::vector<pending> todo_;
  notation how_;
  std::optional<text_automaton> allowed_, number_limit_;
  uint32_t blank_ = 0;  // the rule of an optional blank
};

// Drops alternatives and rules that derive no text or are not used; false if nothing is left.
bool keep_what_ends(grammar::rule_set& of);

}  // namespace bitnet::schema

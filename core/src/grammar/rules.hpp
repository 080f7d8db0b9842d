#pragma once
// A grammar as the matcher reads it: the alternatives of all rules as one list of elements.

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace bitnet::grammar {

// Code points, both ends included.
struct code_range {
  char32_t first;
  char32_t last;
  auto operator<=>(const code_range&) const = default;
};
// Sorted, with a gap between any two, without surrogates; never empty.
using character_class = std::vector<code_range>;

struct text_position {
  uint32_t line = 1;
  uint32_t column = 1;  // in characters
};

struct element {
  enum class kind : uint8_t { end, character, rule };
  kind what = kind::end;
  uint32_t index = 0;  // of a class or a rule
};

struct rule {
  std::string name;   // "" if a group or a repetition became this rule
  uint32_t named_by;  // the rule that has the name: itself, or the one around it
  text_position where;
  std::vector<uint32_t> starts = {};  // of its alternatives, in `elements`
  bool can_be_empty = false;
  uint32_t rank = 0;  // lower than that of every rule that it can begin with
};

struct rule_set {
  std::vector<element> elements;  // alternatives, each with an end behind it
  std::vector<rule> rules;
  std::vector<character_class> classes;
  uint32_t root = 0;  // of rules

  [[nodiscard]] const std::string& name_of(uint32_t r) const {
    return rules[rules[r].named_by].name;
  }
};

// Limits of any grammar, so that none takes more memory or time than a small part of a model's.
inline constexpr std::size_t longest_grammar = std::size_t{1} << 20;  // bytes
inline constexpr uint32_t most_elements = 1U << 18;  // after repetitions are written out
inline constexpr uint32_t most_repetitions = 10'000;
inline constexpr uint32_t deepest_groups = 100;

}  // namespace bitnet::grammar

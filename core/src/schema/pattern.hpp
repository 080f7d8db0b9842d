#pragma once
// Regular expressions of ECMA-262 with the flag u, as far as they are regular, each as the set of
// texts in which it is found. docs/reference/json-schema.md has the notation.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/rules.hpp"
#include "schema/limits.hpp"
#include "schema/text_automaton.hpp"

namespace bitnet::schema {

// A pattern as a tree. The last node is the root.
struct pattern_node {
  enum class kind : uint8_t { set, join, either, repeat, begin, end };
  static constexpr uint32_t endless = UINT32_MAX;
  kind what = kind::join;             // a join of nothing is the empty text
  grammar::character_class set = {};  // of a set
  std::vector<uint32_t> parts = {};   // of the other kinds: numbers of nodes
  uint32_t least = 0, most = 0;       // of a repeat; `endless`: no bound
};
using pattern_tree = std::vector<pattern_node>;

// `where`: the place of the keyword, for messages.
[[nodiscard]] pattern_tree parse_pattern(std::string_view text, const std::string& where,
                                         faults& to);
// Whether the pattern is found in a text, or matches it as a whole.
enum class matching : uint8_t { found, whole };
[[nodiscard]] text_automaton texts_of(const pattern_tree& of, matching how,
                                      const std::string& where, faults& to);

[[nodiscard]] text_automaton texts_of_pattern(std::string_view text, matching how,
                                              const std::string& where, faults& to);

}  // namespace bitnet::schema

#pragma once
// Sets of texts as deterministic automata over characters: texts of a pattern, of a length, of a
// number's digits; and intersections of two.
//
// Every state can reach the end of a text: an automaton without states has no text.
// Errors  in `faults`, if there are more than `most_states`; the result is then empty.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/rules.hpp"
#include "schema/limits.hpp"

namespace bitnet::schema {

struct text_automaton {
  struct edge {
    grammar::code_range on;
    uint32_t to;
    auto operator<=>(const edge&) const = default;
  };
  struct state {
    bool whole = false;       // a text may end here
    std::vector<edge> edges;  // by character; no two overlap
  };
  std::vector<state> states;  // the first one is the start

  [[nodiscard]] bool empty() const { return states.empty(); }
  [[nodiscard]] bool is_any() const;  // whether it plainly has all texts
  [[nodiscard]] bool accepts(std::u32string_view text) const;
};

[[nodiscard]] std::u32string characters_of(std::string_view utf8);  // of valid UTF-8

[[nodiscard]] text_automaton any_text();
[[nodiscard]] text_automaton texts_of_length(uint32_t least, std::optional<uint32_t> most,
                                             faults& to);
[[nodiscard]] text_automaton one_of(const std::vector<std::u32string>& texts, faults& to);
[[nodiscard]] text_automaton all_but(const text_automaton& of);
[[nodiscard]] text_automaton common(const text_automaton& a, const text_automaton& b, faults& to);

// Drops states that cannot reach an end.
void trim(text_automaton& of);

}  // namespace bitnet::schema

#pragma once
// The texts of numbers within bounds.
//
// Form  Integers: digits, without zeros in front, with - if negative. Other numbers may have a
//       fraction; without bounds and steps also an exponent.

#include <optional>
#include <string>
#include <vector>

#include "schema/decimal.hpp"
#include "schema/limits.hpp"
#include "schema/text_automaton.hpp"

namespace bitnet::schema {

struct number_bound {
  decimal at;
  bool exclusive = false;
};

struct numbers {
  bool integer = false;
  std::optional<number_bound> low, high;
  std::vector<decimal> steps;  // a number must be a multiple of each; checked by can_step

  // Returns the numbers of both, with the tighter bounds.
  [[nodiscard]] numbers met(const numbers& other) const;
  // Whether the bounds leave no number; ignores `integer` and steps.
  [[nodiscard]] bool is_void() const;
};

// Whether an automaton can recognise multiples of `by`: an integer up to a bound, or 0.1, 0.01, ...
[[nodiscard]] bool can_step(const decimal& by);

[[nodiscard]] text_automaton texts_of(const numbers& of, const std::string& where, faults& to);

}  // namespace bitnet::schema

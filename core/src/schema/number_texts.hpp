#pragma once
// The texts of numbers within bounds.
//
// Form  Integers: digits, without zeros in front, - before those below 0. Others may have a
//       fraction, and where they have neither bounds nor steps an exponent.

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
  std::vector<decimal> steps;  // multiples of each; checked by can_step

  // With the tighter bounds of both.
  [[nodiscard]] numbers met(const numbers& other) const;
  // Whether the bounds leave nothing; whole numbers and steps are not looked at.
  [[nodiscard]] bool is_void() const;
};

// Whether an automaton can recognise multiples of it: an integer up to the bound, or 0.1, 0.01 ...
[[nodiscard]] bool can_step(const decimal& by);

[[nodiscard]] text_automaton texts_of(const numbers& of, const std::string& where, faults& to);

}  // namespace bitnet::schema

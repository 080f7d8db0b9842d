#pragma once
// Exact numbers of any size, as JSON writes them.

#include <compare>
#include <optional>
#include <string>
#include <string_view>

namespace bitnet::schema {

struct decimal {
  bool negative = false;    // never of 0
  std::string whole = "0";  // digits, without zeros in front
  std::string fraction;     // digits behind the point, without zeros at the end

  // Reads a JSON number; nullopt if it has more than 100 digits, written out.
  static std::optional<decimal> parse(std::string_view text);
  static decimal of(uint64_t n) { return {false, std::to_string(n), {}}; }

  [[nodiscard]] bool is_integer() const { return fraction.empty(); }
  [[nodiscard]] bool is_zero() const { return whole == "0" && fraction.empty(); }
  [[nodiscard]] decimal negated() const;
  [[nodiscard]] decimal floor() const;
  [[nodiscard]] std::string text() const;

  std::strong_ordering operator<=>(const decimal& other) const;
  bool operator==(const decimal& other) const = default;
};

}  // namespace bitnet::schema

#pragma once
// A JSON text as a tree in which each value has its position. Members keep their order, and numbers
// their text.
//
// Errors  BITNET_INVALID_ARGUMENT if the text is no JSON or an object has a name twice;
//         BITNET_UNSUPPORTED if it is too long or too deep.

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace bitnet::schema {

struct value;

struct member {
  std::string name;
  const value* is;
};

struct value {
  enum class kind : uint8_t { null, boolean, number, string, array, object };
  kind what = kind::null;
  bool truth = false;  // of a boolean
  std::string text;    // of a string; of a number, as it is written
  std::vector<const value*> items;
  std::vector<member> members;
  const value* parent = nullptr;
  uint32_t number = 0;  // in the order in which values were added
  std::string step;     // from the parent: a name or an index

  [[nodiscard]] const value* find(std::string_view name) const;
  [[nodiscard]] std::string where() const;  // "#/properties/a"; a long one is shortened
};

[[nodiscard]] std::string_view name_of(value::kind k);  // "an object"

// Owns values at fixed addresses.
class value_store {
 public:
  value& add(const value* parent, std::string step);
  result<const value*> parse(std::string_view text);

 private:
  std::deque<value> values_;
};

}  // namespace bitnet::schema

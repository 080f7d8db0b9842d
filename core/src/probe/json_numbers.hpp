#pragma once
// Whole numbers out of JSON: its own conversion takes any number for any other, whatever is left of
// it, and a number too large for its type is undefined.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

namespace bitnet::probe {

// Throws std::invalid_argument, which says what was found.
template <class Integer>
[[nodiscard]] Integer integer_of(const nlohmann::json& x) {
  if (x.is_number_unsigned() && std::in_range<Integer>(x.get<uint64_t>()))
    return static_cast<Integer>(x.get<uint64_t>());
  if (x.is_number_integer() && !x.is_number_unsigned() && std::in_range<Integer>(x.get<int64_t>()))
    return static_cast<Integer>(x.get<int64_t>());
  throw std::invalid_argument("expected a whole number in its range, found " +
                              x.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace));
}

}  // namespace bitnet::probe

#pragma once
// JSON conversions for all messages of a probe.

#include <fmt/core.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>

namespace bitnet::probe {

// nlohmann's conversion silently converts any number to any other, and is undefined for numbers out
// of range. This one throws std::invalid_argument, which says what was found.
template <class Integer>
[[nodiscard]] Integer integer_of(const nlohmann::json& x) {
  if (x.is_number_unsigned() && std::in_range<Integer>(x.get<uint64_t>()))
    return static_cast<Integer>(x.get<uint64_t>());
  if (x.is_number_integer() && !x.is_number_unsigned() && std::in_range<Integer>(x.get<int64_t>()))
    return static_cast<Integer>(x.get<int64_t>());
  throw std::invalid_argument(
      fmt::format("expected a whole number in its range, found {}",
                  x.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace)));
}

// On one line; invalid UTF-8 is replaced.
[[nodiscard]] inline std::string dump(const nlohmann::json& j) {
  return j.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace bitnet::probe

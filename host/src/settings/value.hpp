#pragma once
// Parses an option's typed value. Flags, environment and config file follow the same rules.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "basic/result.hpp"
#include "settings/option.hpp"

namespace bitnet::host {

using value =
    std::variant<std::monostate, bool, int64_t, double, std::string, std::vector<std::string>>;

// 1/0, true/false, on/off, yes/no, enabled/disabled
[[nodiscard]] std::optional<bool> parse_bool(std::string_view text);
// Decimal, with k m g (powers of 1000) or K M G (powers of 1024): 4k, 8K.
[[nodiscard]] std::optional<int64_t> parse_integer(std::string_view text);
[[nodiscard]] std::optional<double> parse_real(std::string_view text);

// Exit code 2: "expects a whole number from 1 to 4096, found 'x'".
[[nodiscard]] result<value> parse_value(const option& row, std::string_view text);

}  // namespace bitnet::host

#pragma once
// The spellings of an option, for printing the table.

#include <string>
#include <string_view>
#include <vector>

#include "settings/option.hpp"

namespace bitnet::host {

struct option_names {
  std::vector<std::string> shorts;  // "-c", "-sys": one dash
  std::vector<std::string> longs;   // "--ctx-size", "--no-escape": two
};
[[nodiscard]] option_names names_of(const option& row);

// Keys of a config file: without dashes, the main name first.
[[nodiscard]] std::vector<std::string> long_names_of(const option& row);

// Splits "a|b|c" at each '|'; empty parts are left out.
[[nodiscard]] std::vector<std::string> split(std::string_view text, char between);

// Whether the value is a path: FILE, DIR and the like.
[[nodiscard]] bool takes_path(const option& row);

}  // namespace bitnet::host

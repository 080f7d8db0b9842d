#pragma once
// The spellings of an option, for those who print the table.

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

// "a|b|c" cut at each bar.
[[nodiscard]] std::vector<std::string> split_choices(std::string_view choices);

// FILE, DIR and the like: values that are paths.
[[nodiscard]] bool takes_path(const option& row);

}  // namespace bitnet::host

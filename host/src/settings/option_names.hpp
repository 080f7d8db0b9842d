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

// As keys of a config file: without dashes, the option's own name first.
[[nodiscard]] std::vector<std::string> long_names_of(const option& row);

// "a|b|c" cut at each '|'; empty parts are left out.
[[nodiscard]] std::vector<std::string> split(std::string_view text, char between);

// FILE, DIR and the like: values that are paths.
[[nodiscard]] bool takes_path(const option& row);

}  // namespace bitnet::host

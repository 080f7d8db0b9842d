#pragma once
// Parses the words of a command line by the option table, with Boost.Program_options.

#include <string>
#include <utility>
#include <vector>

#include "basic/result.hpp"
#include "settings/option.hpp"

namespace bitnet::host {

struct flag_use {
  const option* row;
  std::string text;
};

struct arguments {
  std::vector<flag_use> flags;  // in the order given
  std::vector<std::string> positionals;
};

// `words` is what follows the command. Exit code 2 for a flag that the command does not take.
[[nodiscard]] result<arguments> parse_arguments(const command& about,
                                                const std::vector<std::string>& words);

}  // namespace bitnet::host

#pragma once
// Help texts, made from the tables of commands and options.

#include <string>

#include "settings/option.hpp"

namespace bitnet::host {

[[nodiscard]] std::string help_of_program();
[[nodiscard]] std::string help_of(const command& about);

}  // namespace bitnet::host

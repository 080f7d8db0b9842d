#pragma once
// Help texts, made from the tables of commands and options.

#include <string>
#include <string_view>

#include "settings/option.hpp"

namespace bitnet::host {

[[nodiscard]] std::string help_of_program();
[[nodiscard]] std::string help_of(const command& about);

// Whether some of its options are also variables and keys of config files; then text about that.
[[nodiscard]] bool has_settings(const command& about);
[[nodiscard]] std::string_view settings_note();

}  // namespace bitnet::host

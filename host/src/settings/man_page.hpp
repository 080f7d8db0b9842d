#pragma once
// Manual pages in man(7), made from the option table.

#include <string>
#include <string_view>

#include "settings/option.hpp"

namespace bitnet::host {

// bitnet(1): the commands.
[[nodiscard]] std::string man_page_of_program(std::string_view version);
// bitnet-run(1) and so on.
[[nodiscard]] std::string man_page_of(const command& about, std::string_view version);
// bitnet.yaml(5): every lasting option as a key.
inline constexpr std::string_view settings_page = "bitnet.yaml";
[[nodiscard]] std::string man_page_of_settings(std::string_view version);

}  // namespace bitnet::host

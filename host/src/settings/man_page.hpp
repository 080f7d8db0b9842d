#pragma once
// Manual pages in man(7) format, made from the option table.

#include <string>
#include <string_view>

#include "settings/option.hpp"

namespace bitnet::host {

// bitnet(1), which lists the commands.
[[nodiscard]] std::string man_page_of_program(std::string_view version);
// bitnet-run(1) and the pages of other commands.
[[nodiscard]] std::string man_page_of(const command& about, std::string_view version);
// bitnet.yaml(5), which has every option that a config file may set as a key.
inline constexpr std::string_view settings_page = "bitnet.yaml";
[[nodiscard]] std::string man_page_of_settings(std::string_view version);

}  // namespace bitnet::host

#pragma once
// Completion scripts of shells, made from the option table.

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace bitnet::host {

// "bash", "zsh", "fish".
[[nodiscard]] std::span<const std::string_view> completed_shells();
// The completion script of a shell; nullopt for an unknown shell.
[[nodiscard]] std::optional<std::string> completion_for(std::string_view shell);

}  // namespace bitnet::host

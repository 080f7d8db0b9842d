#pragma once
// Checks that this machine has what a backend's manifest requires. Opens no device and runs no code
// of the plugin.

#include <filesystem>
#include <map>
#include <string>

#include "plugin/codes/codes.hpp"
#include "plugin/manifest/manifest.hpp"

namespace bitnet::probe {

// BN-S-REQUIRES (BITNET_UNAVAILABLE) with everything that is missing. `packages`: the manifest's
// map from library to package. Facts that cannot be read, such as features if /proc is not mounted,
// do not count as missing.
[[nodiscard]] plugin::checked<void> check_requirements(
    const plugin::machine_needs& of, const std::map<std::string, std::string>& packages);

// A machine as its files describe it, for other roots than "/".
struct machine {
  std::filesystem::path root = "/";
  std::string architecture;  // as in `uname -m`
};
[[nodiscard]] plugin::checked<void> check_requirements(
    const plugin::machine_needs& of, const std::map<std::string, std::string>& packages,
    const machine& on);

}  // namespace bitnet::probe

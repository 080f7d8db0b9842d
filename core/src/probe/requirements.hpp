#pragma once
// Whether this machine has what a backend's manifest requires. Opens no device and runs nothing of
// the plugin.

#include <filesystem>
#include <map>
#include <string>

#include "plugin/codes/codes.hpp"
#include "plugin/manifest/manifest.hpp"

namespace bitnet::probe {

// BN-S-REQUIRES (BITNET_UNAVAILABLE) with all that is missing. `packages` is the manifest's map
// from library to package. What cannot be found out, such as the features where /proc is not
// mounted, is not missing.
[[nodiscard]] plugin::checked<void> check_requirements(
    const plugin::machine_needs& of, const std::map<std::string, std::string>& packages);

// A machine as files show it, for other roots than "/".
struct machine {
  std::filesystem::path root = "/";
  std::string architecture;  // as `uname -m` names it
};
[[nodiscard]] plugin::checked<void> check_requirements(
    const plugin::machine_needs& of, const std::map<std::string, std::string>& packages,
    const machine& on);

}  // namespace bitnet::probe

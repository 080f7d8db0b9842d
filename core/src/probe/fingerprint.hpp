#pragma once
// One short text that changes if anything that a probe's answer may depend on changes.

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "plugin/inspection/inspect.hpp"
#include "plugin/manifest/manifest.hpp"
#include "plugin/trust/trust.hpp"

namespace bitnet::probe {

// Covers the plugin (path and file identity), the libraries that it needs, this core and its
// protocol, the kernel, all that its manifest names (`on`; variables by value), the processor's
// features, the CPUs that this process may use, and the settings. With `devices` also the display
// and accelerator devices of the PCI bus, their drivers and nodes; a CPU backend needs none of
// these. Reads a few small files, opens no device.
[[nodiscard]] std::string fingerprint(
    const std::filesystem::path& library, const plugin::file_identity& identity,
    const plugin::inspection& inspected, const plugin::probe_facts& on,
    const std::vector<std::pair<std::string, std::string>>& params, bool devices);

}  // namespace bitnet::probe

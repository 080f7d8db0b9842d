#pragma once
// All that a probe's answer may depend on, as one short text: another machine state, another text.

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "plugin/inspection/inspect.hpp"
#include "plugin/trust/trust.hpp"

namespace bitnet::probe {

// Of the plugin (path and file identity), the libraries that it needs, this core and its protocol,
// the kernel and its display and accelerator drivers, the vendors' loader libraries and their
// driver lists, PCI display and accelerator devices, device nodes, the processor's features and the
// CPUs that we may use, the variables and the settings. Reads a few small files, opens no device.
// Without `drivers` nothing of drivers and devices is looked at: a CPU depends on neither.
[[nodiscard]] std::string fingerprint(
    const std::filesystem::path& library, const plugin::file_identity& identity,
    const plugin::inspection& inspected, const std::vector<std::string>& variables,
    const std::vector<std::pair<std::string, std::string>>& params, bool drivers);

}  // namespace bitnet::probe

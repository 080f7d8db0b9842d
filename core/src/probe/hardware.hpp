#pragma once
// Detects hardware that could be a GPU or an accelerator. It is fast, independent of vendors, and
// opens no device.

#include <filesystem>
#include <vector>

namespace bitnet::probe {

// True for a display or accelerator on the PCI bus, a node for rendering or computing, WSL's node
// for the GPU of its host, or a node in /dev that no common driver of the kernel makes. False: a
// driver can only offer devices that run on the processor.
[[nodiscard]] bool shows_devices();
// The rule, for other roots than "/".
[[nodiscard]] bool shows_devices(const std::filesystem::path& root);

// Whether the class of a PCI device is display (0x03....) or accelerator (0x12....).
[[nodiscard]] bool is_computing_class(const std::filesystem::path& pci_device);

// The files that match a manifest's pattern: '*' in the last part is any text. `root` is "/".
[[nodiscard]] std::vector<std::filesystem::path> nodes_like(const std::filesystem::path& root,
                                                            const std::filesystem::path& pattern);

}  // namespace bitnet::probe

#pragma once
// Is there anything on this machine that could be a GPU or an accelerator? Cheap to see, and of no
// vendor: opens no device.

#include <filesystem>
#include <vector>

namespace bitnet::probe {

// A display or accelerator on the PCI bus, a node for rendering or computing, the node by which WSL
// hands its host's GPU over, or a node in /dev that no common driver of the kernel makes. False: a
// driver can show what runs on the processor only.
[[nodiscard]] bool shows_devices();
// The rule itself, for other roots than "/".
[[nodiscard]] bool shows_devices(const std::filesystem::path& root);

// The classes of a PCI device that may compute: a display (0x03....) or an accelerator (0x12....).
[[nodiscard]] bool is_computing_class(const std::filesystem::path& pci_device);

// The files that a pattern of a manifest means: '*' in the last part is any text. `root` is "/".
[[nodiscard]] std::vector<std::filesystem::path> nodes_like(const std::filesystem::path& root,
                                                            const std::filesystem::path& pattern);

}  // namespace bitnet::probe

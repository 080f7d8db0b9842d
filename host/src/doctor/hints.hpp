#pragma once
// A table of hardware by PCI vendor and class: which backends compute on it, and which packages
// bring them and their drivers. Read from hardware-hints.yaml.

#include <string>
#include <string_view>
#include <vector>

#include "basic/result.hpp"
#include "doctor/pci.hpp"

namespace bitnet::host::doctor {

struct backend_hint {
  std::string name;                         // "cuda"
  std::string package;                      // "bitnet-backend-cuda"
  std::string driver_package;               // of the API it calls: "mesa-vulkan-drivers"; "": none
  std::vector<std::string> kernel_drivers;  // any of these is enough
};

struct hardware_hint {
  std::string vendor;                       // "10de"
  std::string device_class;                 // first digits of the class: "03"
  std::string name;                         // "GPU of NVIDIA"
  std::string note;                         // why nothing computes on it, if `backends` is empty
  std::string kernel_package;               // brings a kernel driver; "": the kernel has it
  std::vector<std::string> nodes;           // at least one must exist: "/dev/nvidia*"
  std::vector<backend_hint> backends = {};  // the best first
};

using hardware_hints = std::vector<hardware_hint>;

// Returns the first row that matches the device, or NULL.
[[nodiscard]] const hardware_hint* hint_for(const hardware_hints& all, const pci_device& device);

// Parses a file's text; messages call the file `name`. Unknown keys are ignored, since a later
// version may write them. Any other error is reported with its line.
[[nodiscard]] result<hardware_hints> parse_hints(const std::string& text, std::string_view name);

}  // namespace bitnet::host::doctor

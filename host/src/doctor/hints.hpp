#pragma once
// What is known of hardware by its PCI vendor and class alone: which backends compute on it, and
// the packages that bring them and their drivers. Read from hardware-hints.yaml.

#include <string>
#include <string_view>
#include <vector>

#include "doctor/pci.hpp"
#include "result.hpp"

namespace bitnet::host::doctor {

struct backend_hint {
  std::string name;                         // "cuda"
  std::string package;                      // "bitnet-backend-cuda"
  std::string driver_package;               // of what it calls: "mesa-vulkan-drivers"; "": none
  std::vector<std::string> kernel_drivers;  // with any of which it works
};

struct hardware_hint {
  std::string vendor;                       // "10de"
  std::string device_class;                 // its first digits: "03"
  std::string name;                         // "GPU of NVIDIA"
  std::string note;                         // why nothing computes on it, where `backends` is empty
  std::string kernel_package;               // brings a kernel driver; "": the kernel itself does
  std::vector<std::string> nodes;           // one of them at least is there: "/dev/nvidia*"
  std::vector<backend_hint> backends = {};  // the best first
};

using hardware_hints = std::vector<hardware_hint>;

// The first row for the device, or NULL.
[[nodiscard]] const hardware_hint* hint_for(const hardware_hints& all, const pci_device& device);

// Of the text of a file that messages call `name`. A key that is unknown is passed over, as a later
// version may write it; all else that is not as it should be is named with its line.
[[nodiscard]] result<hardware_hints> parse_hints(const std::string& text, std::string_view name);

}  // namespace bitnet::host::doctor

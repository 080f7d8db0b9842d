#pragma once
// Decides for each PCI device whether a backend computes on it, and if not, why.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "doctor/hints.hpp"
#include "doctor/nodes.hpp"
#include "doctor/pci.hpp"

namespace bitnet::host::doctor {

// Ordered by the cost of the advice: one command comes before a reboot.
enum class device_state : uint8_t {
  driven,        // a backend computes on it
  no_access,     // its node exists, and this user may not open it
  failing,       // a backend for it is installed and says why it cannot be used
  not_listed,    // a backend for it works, and does not list this device
  no_node,       // the kernel drives it, but /dev has no node, as in containers
  other_driver,  // the kernel's driver for it is one that no backend works with
  no_driver,     // the kernel has no driver for it
  no_backend,    // only a backend's package is missing
  passed_on,     // it is reserved for virtual machines
  idle,          // no backend computes on such a device
  unknown,       // the table of hints does not have it
};

struct verdict {
  pci_device device;
  std::string name;  // "GPU of NVIDIA"; "": unknown
  device_state state = device_state::unknown;
  std::string driven_by;                   // "cuda:0"
  std::string problem;                     // a sentence without its full stop; "": none
  std::string advice;                      // "": nothing can be done
  std::vector<std::string> packages = {};  // that bring a backend, the best first
};

[[nodiscard]] std::string_view state_name(device_state state);

// `backends`: the member of that name in bitnet_runtime_report().
[[nodiscard]] std::vector<verdict> judge_devices(const std::vector<pci_device>& devices,
                                                 const std::vector<node>& nodes,
                                                 const hardware_hints& hints,
                                                 const nlohmann::json& backends);

}  // namespace bitnet::host::doctor

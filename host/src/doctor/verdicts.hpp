#pragma once
// Whether something of bitnet computes on a device of the PCI bus, and if not, what is in the way.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "doctor/hints.hpp"
#include "doctor/nodes.hpp"
#include "doctor/pci.hpp"

namespace bitnet::host::doctor {

// In the order in which advice counts: what takes one command comes before what takes a reboot.
enum class device_state : uint8_t {
  driven,        // a backend computes on it
  no_access,     // its node is there, and closed to this user
  failing,       // a backend for it is installed and says why it cannot be used
  not_listed,    // a backend for it works, and does not list this device
  no_node,       // the kernel drives it, and /dev has no node of it, as in containers
  other_driver,  // the kernel's driver for it is one that no backend works with
  no_driver,     // the kernel has no driver for it
  no_backend,    // all is there but the package of a backend
  passed_on,     // it is kept for virtual machines
  idle,          // nothing computes on such a device
  unknown,       // nothing is known of it
};

struct verdict {
  pci_device device;
  std::string name;  // "GPU of NVIDIA"; "": unknown
  device_state state = device_state::unknown;
  std::string driven_by;                   // "cuda:0"
  std::string problem;                     // a sentence without its end; "" where there is none
  std::string advice;                      // what to do; "" where nothing can be done
  std::vector<std::string> packages = {};  // that would bring a backend, the best first
};

[[nodiscard]] std::string_view state_name(device_state state);

// `backends`: the list of that name in bitnet_runtime_report().
[[nodiscard]] std::vector<verdict> judge_devices(const std::vector<pci_device>& devices,
                                                 const std::vector<node>& nodes,
                                                 const hardware_hints& hints,
                                                 const nlohmann::json& backends);

}  // namespace bitnet::host::doctor

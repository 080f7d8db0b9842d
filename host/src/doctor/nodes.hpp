#pragma once
// Device nodes, by which programs reach what computes, and whether this process may use them.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/system_tree.hpp"

namespace bitnet::host::doctor {

struct node {
  std::string path;       // "/dev/dri/renderD128"
  std::string group;      // that owns it, by name if it has one; else its number
  uint32_t mode = 0;      // of access: 0660
  bool usable = false;    // for reading and writing
  bool by_group = false;  // members of `group`, which is not root's, may use it
  std::string address;    // of the PCI device behind it: "0000:01:00.0"; "": unknown
};

// Of Linux' render nodes, accelerators, AMD's and NVIDIA's own, and WSL's. None is opened.
[[nodiscard]] std::vector<node> device_nodes(const system_tree& system);

// Whether `path` is `pattern`, which may end with a star: "/dev/dri/renderD*".
[[nodiscard]] bool matches(std::string_view path, std::string_view pattern);

}  // namespace bitnet::host::doctor

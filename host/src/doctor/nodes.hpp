#pragma once
// Device nodes of hardware that computes, and whether this process may open them.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/system_tree.hpp"

namespace bitnet::host::doctor {

struct node {
  std::string path;       // "/dev/dri/renderD128"
  std::string group;      // owning group, by name or else number
  uint32_t mode = 0;      // access mode: 0660
  bool usable = false;    // readable and writable
  bool by_group = false;  // members of `group`, unless it is root's, may use it
  std::string address;    // PCI device behind it: "0000:01:00.0"; "": unknown
};

// Lists Linux' render nodes and accelerators, and the nodes of AMD, NVIDIA and WSL. Opens none.
[[nodiscard]] std::vector<node> device_nodes(const system_tree& system);

// Whether `path` is `pattern`, which may end with a star: "/dev/dri/renderD*".
[[nodiscard]] bool matches(std::string_view path, std::string_view pattern);

}  // namespace bitnet::host::doctor

#pragma once
// Lists the shared objects of this process, and checks that a plugin brought only judged ones.

#include <cstdint>
#include <string>
#include <vector>

#include "plugin/codes/codes.hpp"
#include "plugin/inspection/dependencies.hpp"
#include "plugin/inspection/inspect.hpp"
#include "plugin/loading/mapped_files.hpp"

namespace bitnet::plugin {

struct loaded_object {
  std::string path;    // the linker's path for it
  uint64_t begin = 0;  // of its first segment
  bool operator==(const loaded_object&) const = default;
};

// As dl_iterate_phdr reports them.
[[nodiscard]] std::vector<loaded_object> loaded_objects();

// Loaded libraries that the plugin needs and whose path leads to another file by now: the linker
// would give the plugin the old ones.
[[nodiscard]] std::vector<std::string> stale_libraries(const inspection& plugin);

// Checks each object that is new since `before`: it is the plugin or a judged file. Since
// constructors and other threads load libraries too, it may also be one that only root or the user
// could have put there. BN-T-CHANGED.
[[nodiscard]] checked<void> check_loaded(const std::vector<loaded_object>& before,
                                         const mapped_identity& plugin,
                                         const std::vector<needed_library>& judged);

}  // namespace bitnet::plugin

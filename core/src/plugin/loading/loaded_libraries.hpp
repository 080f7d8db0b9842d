#pragma once
// Which shared objects this process has, and whether those that a plugin brought are those that
// were judged.

#include <cstdint>
#include <string>
#include <vector>

#include "plugin/codes/codes.hpp"
#include "plugin/inspection/dependencies.hpp"
#include "plugin/inspection/inspect.hpp"
#include "plugin/loading/mapped_files.hpp"

namespace bitnet::plugin {

struct loaded_object {
  std::string path;    // under which the linker found it
  uint64_t begin = 0;  // of its first segment
  bool operator==(const loaded_object&) const = default;
};

// As dl_iterate_phdr reports them.
[[nodiscard]] std::vector<loaded_object> loaded_objects();

// Paths of libraries that this process has loaded and the plugin needs, where another file lies
// under their path by now: the linker would give the plugin the old ones.
[[nodiscard]] std::vector<std::string> stale_libraries(const inspection& plugin);

// After a plugin was loaded: is each object that was not there `before` the plugin, a file that was
// judged, or, as constructors and other threads load libraries too, at least one that only root or
// the user could have put there? BN-T-CHANGED.
[[nodiscard]] checked<void> check_loaded(const std::vector<loaded_object>& before,
                                         const mapped_identity& plugin,
                                         const std::vector<needed_library>& judged);

}  // namespace bitnet::plugin

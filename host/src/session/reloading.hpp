#pragma once
// Calls bitnet_backend_reload with the command line's settings, and prints its result as a line.

#include <memory>
#include <string>
#include <vector>

#include "session/engine.hpp"
#include "session/watcher.hpp"

namespace bitnet::host {

// "cpu: generation 2, build id 1f0a...; 1 session moves". A rejected reload is a failure, exit code
// 1.
[[nodiscard]] result<std::string> reload_backend(bitnet_runtime* runtime,
                                                 const std::string& backend, const settings& set);

// A backend's library in memory, as bitnet_runtime_report lists it.
struct loaded_copy {
  std::string backend, library, manifest, state, build_id;
  std::string named;    // the library's path as its manifest has it, links unresolved
  uint32_t number = 0;  // from 1; "generation" in the report
};
[[nodiscard]] std::vector<loaded_copy> loaded_copies(bitnet_runtime* runtime);

// With --watch: reloads loaded backends when their files change. The watcher must be destroyed
// before the runtime. nullptr without --watch.
[[nodiscard]] result<std::unique_ptr<watcher>> watch_backends(const invocation& in,
                                                              bitnet_runtime* runtime);

}  // namespace bitnet::host

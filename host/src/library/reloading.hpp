#pragma once
// bitnet_backend_reload with the settings of the command line, and its answer as a line.

#include <memory>
#include <string>
#include <vector>

#include "library/engine.hpp"
#include "library/watcher.hpp"

namespace bitnet::host {

// "cpu: generation 2, build id 1f0a...; 1 session moves". A refusal is a failure of exit code 1.
[[nodiscard]] result<std::string> reload_backend(bitnet_runtime* runtime,
                                                 const std::string& backend, const settings& set);

// A copy of a backend that is in memory, as `bitnet_runtime_report` lists it.
struct loaded_copy {
  std::string backend, library, manifest, state, build_id;
  std::string named;  // the library as its manifest names it, through links
  uint32_t generation = 0;
};
[[nodiscard]] std::vector<loaded_copy> loaded_copies(bitnet_runtime* runtime);

// With --watch: reloads what is loaded whenever its files change, until the watcher ends, which
// must be before the runtime does. nullptr without.
[[nodiscard]] result<std::unique_ptr<watcher>> watch_backends(const invocation& in,
                                                              bitnet_runtime* runtime);

}  // namespace bitnet::host

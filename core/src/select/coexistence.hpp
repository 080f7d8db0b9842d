#pragma once
// Tracks the backends that this process has loaded, and rejects conflicting ones: two that each
// bring a compiler (LLVM) may abort a process that has both.
//
// A retired plugin stays mapped (docs/adr/0004-retire-without-dlclose.md), so a backend stays here
// from its first load to the end of the process, whichever runtime loaded it.
//
// Threads: any.

#include <optional>
#include <string>
#include <vector>

namespace bitnet::select {

// Registers `name`, whose manifest lists `conflicts`, before it is loaded. If it conflicts with a
// loaded backend, by either manifest, it returns that backend's name and registers nothing.
[[nodiscard]] std::optional<std::string> join_loaded(const std::string& name,
                                                     const std::vector<std::string>& conflicts);
// Unregisters it if its file could not be loaded, unless it was registered before.
void leave_loaded(const std::string& name);

}  // namespace bitnet::select

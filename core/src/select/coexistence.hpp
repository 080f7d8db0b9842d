#pragma once
// Which backends this process has loaded, and which may not join them: two that each bring a
// compiler (LLVM) of their own may abort the process that has both.
//
// A plugin stays mapped when it is retired (docs/adr/0004-retire-without-dlclose.md), so a backend
// stays here from its first load to the end of the process, whichever runtime loaded it.
//
// Threads: any.

#include <optional>
#include <string>
#include <vector>

namespace bitnet::select {

// Notes that `name` is being loaded, whose manifest lists `conflicts`. Nothing: it may be. Else the
// name of the loaded backend that it conflicts with, by either manifest; nothing is noted then.
[[nodiscard]] std::optional<std::string> join_loaded(const std::string& name,
                                                     const std::vector<std::string>& conflicts);
// Forgets it, as its file could not be loaded. One that was noted before stays.
void leave_loaded(const std::string& name);

}  // namespace bitnet::select

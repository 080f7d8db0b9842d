#pragma once
// Which libraries that a plugin needs are not on this machine: all of them at once, where the
// dynamic linker would stop at the first.

#include <filesystem>
#include <string>
#include <vector>

#include "plugin/inspect.hpp"

namespace bitnet::plugin {

// Looks where the dynamic linker does: what is loaded already, the plugin's run path, the linker's
// own search path (LD_LIBRARY_PATH is part of it) and the directories of /etc/ld.so.conf. Says
// nothing where the linker does not tell its search path.
[[nodiscard]] std::vector<std::string> missing_libraries(const inspection& plugin,
                                                         const std::filesystem::path& directory);

// Paths of libraries that this process has loaded and the plugin needs, where another file lies
// under their path by now: the linker would give the plugin the old ones.
[[nodiscard]] std::vector<std::string> stale_libraries(const inspection& plugin);

// The directories that an ld.so.conf file names, includes followed.
[[nodiscard]] std::vector<std::filesystem::path> linker_directories(
    const std::filesystem::path& configuration);

}  // namespace bitnet::plugin

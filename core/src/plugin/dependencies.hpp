#pragma once
// Which libraries a plugin needs, theirs included, and where each lies: all that are missing at
// once, where the dynamic linker would stop at the first.

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "plugin/finding.hpp"
#include "plugin/inspect.hpp"

namespace bitnet::plugin {

struct needed_library {
  std::string name;            // "libc.so.6"
  std::string needed_by;       // the library that needs it; "" for the plugin itself
  std::filesystem::path file;  // "" if it is not on this machine
};

// Looks where the dynamic linker does: what is loaded already, the run path, the linker's own
// search path (LD_LIBRARY_PATH is part of it) and the directories of /etc/ld.so.conf; libraries for
// other machines do not count. Nothing where the linker does not tell its search path.
[[nodiscard]] std::vector<needed_library> resolve_libraries(const inspection& plugin);

// BN-I-DEPENDENCY (BITNET_UNAVAILABLE) with all that is missing and, from `packages`, who has it.
void examine_dependencies(const std::vector<needed_library>& libraries,
                          const std::map<std::string, std::string>& packages, findings& found);

// Paths of libraries that this process has loaded and the plugin needs, where another file lies
// under their path by now: the linker would give the plugin the old ones.
[[nodiscard]] std::vector<std::string> stale_libraries(const inspection& plugin);

// A line of an ld.so.conf file that means something: an absolute folder, or a pattern of files to
// include.
struct linker_line {
  bool includes = false;
  std::string text;
};
[[nodiscard]] std::vector<linker_line> parse_linker_lines(std::string_view text);

// The directories that an ld.so.conf file names, includes followed.
[[nodiscard]] std::vector<std::filesystem::path> linker_directories(
    const std::filesystem::path& configuration);

}  // namespace bitnet::plugin

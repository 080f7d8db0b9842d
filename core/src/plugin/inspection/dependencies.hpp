#pragma once
// Finds the libraries that a plugin needs, directly and indirectly, and checks that each can be
// trusted. It lists all missing ones, while the dynamic linker stops at the first, and rejects
// libraries that another user could replace.

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "plugin/codes/finding.hpp"
#include "plugin/inspection/inspect.hpp"
#include "plugin/inspection/library_search.hpp"

namespace bitnet::plugin {

struct needed_library {
  std::string name;            // "libc.so.6"
  std::string needed_by;       // the library that needs it; "" for the plugin itself
  std::filesystem::path file;  // "" if not found
  bool loaded = false;         // in this process already
  std::vector<std::filesystem::path> variants{};  // files that some processors would load instead
  std::optional<defect> fault{};                  // why it must not be loaded
};

// Options for the libraries of a file that is no plugin.
struct resolution {
  std::string origin{};            // the folder for $ORIGIN; a plugin has none
  bool follows_untrusted = false;  // also list what an untrusted library needs
};

// Searches as the dynamic linker does: loaded libraries, then library_search; libraries for other
// machines are skipped. Returns nothing if the linker does not report its search path.
[[nodiscard]] std::vector<needed_library> resolve_libraries(const inspection& plugin,
                                                            const resolution& how = {});

// Rejects the first library that must not be loaded. BN-I-FOREIGN, BN-I-RUN-PATH, BN-I-FORMAT,
// BN-T-*.
[[nodiscard]] checked<void> check_libraries(const std::vector<needed_library>& libraries);

// Reports BN-I-DEPENDENCY (BITNET_UNAVAILABLE) with all missing libraries and, from `packages`,
// their packages; the errors of check_libraries(); BN-T-HASH if a library differs from the
// manifest's `hashes`.
void examine_dependencies(const std::vector<needed_library>& libraries,
                          const std::map<std::string, std::string>& packages,
                          const std::map<std::string, std::string>& hashes, findings& found);

}  // namespace bitnet::plugin

#pragma once
// Which libraries a plugin needs, theirs included, where each lies and whether it can be trusted:
// all that are missing at once, where the dynamic linker would stop at the first, and nothing that
// another user could put there.

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
  std::filesystem::path file;  // "" if it is not on this machine
  bool loaded = false;         // this process has it already
  std::vector<std::filesystem::path> variants{};  // that some processors would take instead
  std::optional<defect> fault{};                  // why it must not be loaded
};

// How the libraries of a file are looked for, where it is no plugin.
struct resolution {
  std::string origin{};            // the folder that $ORIGIN means; a plugin has none
  bool follows_untrusted = false;  // also what an untrusted library needs
};

// Looks where the dynamic linker does: what is loaded already, and library_search; libraries for
// other machines do not count. Nothing where the linker does not report its search path.
[[nodiscard]] std::vector<needed_library> resolve_libraries(const inspection& plugin,
                                                            const resolution& how = {});

// The first library that must not be loaded. BN-I-FOREIGN, BN-I-RUN-PATH, BN-I-FORMAT, BN-T-*.
[[nodiscard]] checked<void> check_libraries(const std::vector<needed_library>& libraries);

// BN-I-DEPENDENCY (BITNET_UNAVAILABLE) with all that is missing and, by `packages`, what has it;
// what check_libraries() finds. `hashes` are those that the manifest wants libraries to have:
// BN-T-HASH.
void examine_dependencies(const std::vector<needed_library>& libraries,
                          const std::map<std::string, std::string>& packages,
                          const std::map<std::string, std::string>& hashes, findings& found);

}  // namespace bitnet::plugin

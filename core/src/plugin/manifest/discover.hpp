#pragma once
// Finds the manifests; of two with the same name one has precedence.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "plugin/codes/codes.hpp"
#include "plugin/manifest/manifest.hpp"

namespace bitnet::plugin {

struct found_manifest {
  std::string name;  // the file name's, so that a broken manifest has one too
  std::filesystem::path file;
  checked<plugin::manifest> manifest;
};

struct searched_directory {
  std::filesystem::path path;
  std::string result;        // "2 manifests", "absent", "cannot be trusted: ..."
  bool passed_over = false;  // a user's directory, which root does not search
};

struct discovery {
  std::vector<found_manifest> found;
  std::vector<searched_directory> searched;  // in the order given
};

// A directory with more files is not used.
constexpr std::size_t most_manifests = 1024;
constexpr uint64_t most_directory_entries = 65536;

// Reads all directories, lowest precedence first. A file masks files of the same name in earlier
// directories; an empty one, or a link to /dev/null, disables the backend (BN-M-DISABLED). Of two
// manifests for one backend the later is used; the other gets BN-M-DUPLICATE.
[[nodiscard]] discovery discover(const std::vector<std::filesystem::path>& directories);

}  // namespace bitnet::plugin

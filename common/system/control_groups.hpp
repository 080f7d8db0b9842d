#pragma once
// The control groups (cgroups) of this process. They may limit it to less than the machine has.
//
// Source  cgroups(7): version 1 in a folder for each controller, version 2 in one for all.

#include <filesystem>
#include <string_view>
#include <vector>

namespace bitnet {

struct control_group {
  std::filesystem::path folder;  // has the kernel's files of this group
  bool unified = true;           // version 2
};

// Returns the groups of this process and all their parents; the tightest limit of them applies.
// `root` contains proc and sys.
[[nodiscard]] std::vector<control_group> control_groups(const std::filesystem::path& root = "/");

// The same for the text of /proc/self/cgroup. Paths that are implausibly deep are ignored.
[[nodiscard]] std::vector<control_group> control_groups_in(std::string_view listing,
                                                           const std::filesystem::path& root);

}  // namespace bitnet

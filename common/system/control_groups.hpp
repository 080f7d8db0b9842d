#pragma once
// The control groups (cgroups) of this process, by which the system may give it less than the
// machine has.
//
// Source  cgroups(7): version 1 in a folder for each controller, version 2 in one for all.

#include <filesystem>
#include <string_view>
#include <vector>

namespace bitnet {

struct control_group {
  std::filesystem::path folder;  // of the kernel's files about it
  bool unified = true;           // version 2
};

// The groups that this process is in, and all above them: the tightest limit of them counts.
// `root` has proc and sys in it.
[[nodiscard]] std::vector<control_group> control_groups(const std::filesystem::path& root = "/");

// The same of the text of /proc/self/cgroup. Groups that lie deeper than any does are left out.
[[nodiscard]] std::vector<control_group> control_groups_in(std::string_view listing,
                                                           const std::filesystem::path& root);

}  // namespace bitnet

#pragma once
// What of a process a plugin may not change, and whether it did: BR-10.

#include <sys/resource.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace bitnet::probe {

// Of the calling thread where it is one's own.
struct process_state {
  uint64_t floating_point_modes = 0;
  std::array<struct sigaction, NSIG> handlers{};
  sigset_t blocked{};
  std::string locale, folder;
  long mask_of_modes = -1;
  std::map<std::string, std::string> variables;
  std::array<rlimit, RLIMIT_NLIMITS> limits{};
  std::set<int> descriptors;

  [[nodiscard]] static process_state now();
};

struct breaches {
  std::vector<std::string> wrong;    // that no plugin may do
  std::vector<std::string> remarks;  // that its driver did, or may have done
};

// A handler in another library than the plugin, a variable that was not there before, and an open
// descriptor are what drivers leave behind. `at_end`: nothing should be open any more.
[[nodiscard]] breaches compare(const process_state& before, const process_state& after,
                               bool at_end);

}  // namespace bitnet::probe

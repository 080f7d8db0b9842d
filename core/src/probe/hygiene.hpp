#pragma once
// Checks whether a plugin changed process state that it must not change: BR-10.

#include <sys/resource.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace bitnet::probe {

// Per-thread state is that of the calling thread.
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
  std::vector<std::string> wrong;    // breaches of rules
  std::vector<std::string> remarks;  // changes that drivers make, or may have made
};

// Drivers may leave a handler in another library than the plugin, a new variable, or an open
// descriptor. `at_end`: everything should be closed.
[[nodiscard]] breaches compare(const process_state& before, const process_state& after,
                               bool at_end);

}  // namespace bitnet::probe

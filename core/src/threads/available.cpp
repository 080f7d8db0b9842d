#include <sched.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

#include "threads/pool.hpp"

namespace bitnet::threads {
namespace {

uint32_t affinity() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0)
    return std::max(1U, std::thread::hardware_concurrency());
  return static_cast<uint32_t>(std::max(1, CPU_COUNT(&set)));
}

// CPUs that "quota period" microseconds allow, rounded up; `none` when there is no limit.
uint32_t cpus_of(double quota, double period, uint32_t none) {
  if (quota <= 0 || period <= 0) return none;
  return std::max(1U, static_cast<uint32_t>((quota + period - 1) / period));
}

// The tightest limit of this process's cgroup and its parents, version 2 then version 1.
uint32_t quota(uint32_t none) {
  uint32_t best = none;
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    std::string path = line.substr(second + 1);
    const bool v2 = controllers.empty();
    if (!v2 && controllers.find("cpu") == std::string::npos) continue;
    while (true) {
      if (v2) {
        std::ifstream max("/sys/fs/cgroup" + path + "/cpu.max");
        std::string allowed;
        double period = 0;
        if (max >> allowed >> period && allowed != "max")
          best = std::min(best, cpus_of(std::atof(allowed.c_str()), period, none));
      } else {
        const std::string folder = "/sys/fs/cgroup/" + controllers + path;
        std::ifstream quota_file(folder + "/cpu.cfs_quota_us");
        std::ifstream period_file(folder + "/cpu.cfs_period_us");
        double allowed = 0;
        double period = 0;
        if (quota_file >> allowed && period_file >> period)
          best = std::min(best, cpus_of(allowed, period, none));
      }
      const auto slash = path.rfind('/');
      if (path.size() <= 1 || slash == std::string::npos) break;
      path.resize(slash);
    }
  }
  return best;
}

}  // namespace

uint32_t available() {
  const uint32_t cpus = affinity();
  return std::min(cpus, quota(cpus));
}

}  // namespace bitnet::threads

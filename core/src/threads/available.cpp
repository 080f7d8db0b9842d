#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "base/control_groups.hpp"
#include "threads/pool.hpp"
#include "threads/topology.hpp"

namespace bitnet::threads {
namespace {

// CPUs that "quota period" microseconds allow, rounded up; `none` when there is no limit.
uint32_t cpus_of(double quota, double period, uint32_t none) {
  if (quota <= 0 || period <= 0) return none;
  return std::max(1U, static_cast<uint32_t>((quota + period - 1) / period));
}

// The limit that one cgroup folder sets; `none` when it sets none.
uint32_t limit_v2(const std::filesystem::path& folder, uint32_t none) {
  std::ifstream file(folder / "cpu.max");
  std::string allowed;  // microseconds, or "max"
  double period = 0;
  if (!(file >> allowed >> period) || allowed == "max") return none;
  return cpus_of(std::strtod(allowed.c_str(), nullptr), period, none);
}
uint32_t limit_v1(const std::filesystem::path& folder, uint32_t none) {
  std::ifstream quota_file(folder / "cpu.cfs_quota_us");
  std::ifstream period_file(folder / "cpu.cfs_period_us");
  double allowed = 0;
  double period = 0;
  if (!(quota_file >> allowed) || !(period_file >> period)) return none;
  return cpus_of(allowed, period, none);
}

// The tightest limit of this process's cgroup and its parents, in version 1 and 2.
uint32_t quota(uint32_t none) {
  uint32_t best = none;
  for (const control_group& group : control_groups())
    best = std::min(best, (group.unified ? limit_v2 : limit_v1)(group.folder, none));
  return best;
}

}  // namespace

uint32_t available(const cpu_list& cpus) {
  std::set<uint32_t> cores;
  for (const uint32_t cpu : cpus) cores.insert(core_of("/", cpu));
  const auto n = static_cast<uint32_t>(std::max<std::size_t>(cores.size(), 1));
  return std::min(n, quota(n));
}

uint32_t available() {
  return available(allowed_cpus());
}

}  // namespace bitnet::threads

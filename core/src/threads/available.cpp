#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <set>
#include <string>

#include "system/control_groups.hpp"
#include "threads/pool.hpp"
#include "threads/topology.hpp"

namespace bitnet::threads {
namespace {

// CPUs that "quota period" in microseconds permits, rounded up; `none` without a limit, "max" or
// -1.
uint32_t cpus_of(const std::string& allowed, const std::string& of_period, uint32_t none) {
  int64_t quota = 0;
  int64_t period = 0;
  std::from_chars(allowed.data(), allowed.data() + allowed.size(), quota);
  std::from_chars(of_period.data(), of_period.data() + of_period.size(), period);
  if (quota <= 0 || period <= 0) return none;
  const int64_t cpus = quota / period + (quota % period != 0 ? 1 : 0);
  return static_cast<uint32_t>(std::clamp<int64_t>(cpus, 1, std::numeric_limits<uint32_t>::max()));
}

// The limit that one cgroup folder sets; `none` when it sets none.
uint32_t limit_v2(const std::filesystem::path& folder, uint32_t none) {
  std::ifstream file(folder / "cpu.max");
  std::string allowed, period;
  file >> allowed >> period;
  return cpus_of(allowed, period, none);
}
uint32_t limit_v1(const std::filesystem::path& folder, uint32_t none) {
  std::ifstream quota_file(folder / "cpu.cfs_quota_us");
  std::ifstream period_file(folder / "cpu.cfs_period_us");
  std::string allowed, period;
  quota_file >> allowed;
  period_file >> period;
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

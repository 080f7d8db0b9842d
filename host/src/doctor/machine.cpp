#include "doctor/machine.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "system/control_groups.hpp"
#include "text/items.hpp"
#include "text/printable.hpp"

namespace bitnet::host::doctor {
namespace {

using nlohmann::ordered_json;

void put(ordered_json& out, const char* key, const std::optional<uint64_t>& value) {
  if (value) out[key] = *value;
}

// Parses "MemTotal: 16 kB" of /proc/meminfo as bytes.
std::optional<uint64_t> bytes_at(std::string_view meminfo, std::string_view name) {
  const auto words = words_of(field_of(meminfo, name).value_or(""));
  const auto kib = words.empty() ? std::nullopt : number_of(words.front());
  if (!kib || *kib > UINT64_MAX / 1024) return std::nullopt;
  return *kib * 1024;
}

std::optional<uint64_t> count_at(std::string_view text, std::string_view name) {
  return number_of(field_of(text, name).value_or(""));
}

// Returns the word in brackets: "always [madvise] never".
std::string chosen_word(std::string_view line) {
  const auto from = line.find('[');
  const auto to = line.find(']', from);
  if (from == std::string_view::npos || to == std::string_view::npos) return "";
  return std::string(line.substr(from + 1, to - from - 1));
}

// The soft limit of a row of /proc/self/limits: "Max processes    7   7   processes".
std::optional<uint64_t> limit_at(std::string_view limits, std::string_view name) {
  const auto at = limits.find(name);
  if (at == std::string_view::npos) return std::nullopt;
  const auto words = words_of(limits.substr(at + name.size()));
  return words.empty() ? std::nullopt : number_of(words.front());
}

struct group_limits {
  std::optional<double> cpus;
  std::optional<uint64_t> memory, left, tasks;
};

template <class Number>
void tighten(std::optional<Number>& limit, const std::optional<Number>& another) {
  if (another && (!limit || *another < *limit)) limit = another;
}

// Version 2: "150000 100000" or "max 100000". Version 1: two files, with -1 for no limit.
std::optional<double> quota_of(const system_tree& system, const control_group& group) {
  std::optional<uint64_t> quota, period;
  if (group.unified) {
    const std::string line = system.line(group.folder / "cpu.max");
    const auto words = words_of(line);
    if (words.size() != 2) return std::nullopt;
    quota = number_of(words[0]);
    period = number_of(words[1]);
  } else {
    quota = system.number(group.folder / "cpu.cfs_quota_us");
    period = system.number(group.folder / "cpu.cfs_period_us");
  }
  if (!quota || !period || *quota == 0 || *period == 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

// Memory that the kernel reclaims before the limit applies does not count as used.
uint64_t used_of(const system_tree& system, const control_group& group, uint64_t usage) {
  const std::string_view name = group.unified ? "inactive_file " : "total_inactive_file ";
  const std::string statistics =
      "\n" + system.text(group.folder / "memory.stat").value_or("") + "\n";
  const auto at = statistics.find("\n" + std::string(name));
  if (at == std::string::npos) return usage;
  const auto begin = at + 1 + name.size();
  const auto idle =
      number_of(std::string_view(statistics).substr(begin, statistics.find('\n', begin) - begin));
  return usage - std::min(usage, idle.value_or(0));
}

group_limits limits_of_groups(const system_tree& system) {
  constexpr uint64_t unlimited = uint64_t{1} << 60U;  // version 1 reports about 2^63
  group_limits out;
  const std::string listing = system.text("proc/self/cgroup").value_or("");
  for (const control_group& group : control_groups_in(listing, "")) {
    tighten(out.cpus, quota_of(system, group));
    tighten(out.tasks, system.number(group.folder / "pids.max"));
    const auto limit =
        system.number(group.folder / (group.unified ? "memory.max" : "memory.limit_in_bytes"));
    if (!limit || *limit >= unlimited) continue;
    tighten(out.memory, limit);
    const auto usage =
        system.number(group.folder / (group.unified ? "memory.current" : "memory.usage_in_bytes"));
    if (!usage) continue;
    const uint64_t used = used_of(system, group, *usage);
    tighten(out.left, std::optional(*limit - std::min(*limit, used)));
  }
  return out;
}

std::optional<uint64_t> cgroup_version(const system_tree& system) {
  if (system.exists("sys/fs/cgroup/cgroup.controllers")) return 2;
  const std::string listing = system.text("proc/self/cgroup").value_or("");
  return listing.empty() ? std::nullopt : std::optional<uint64_t>(1);
}

}  // namespace

ordered_json page_facts(const system_tree& system) {
  ordered_json out = ordered_json::object();
  const std::string pages = "sys/kernel/mm/transparent_hugepage/";
  if (const std::string word = chosen_word(system.line(pages + "enabled")); !word.empty())
    out["transparent"] = word;
  put(out, "large_page_bytes", system.number(pages + "hpage_pmd_size"));
  const std::string memory = system.text("proc/meminfo").value_or("");
  put(out, "reserved_pages", count_at(memory, "HugePages_Total"));
  put(out, "free_pages", count_at(memory, "HugePages_Free"));
  return out;
}

ordered_json governor_facts(const system_tree& system) {
  ordered_json out = ordered_json::object();
  const std::filesystem::path all = "sys/devices/system/cpu/cpufreq";
  std::set<std::string> governors;
  for (const std::string& name : system.names(all)) {
    if (!name.starts_with("policy")) continue;
    const std::string governor = system.line(all / name / "scaling_governor");
    if (governor.empty()) continue;
    governors.insert(governor);
    if (out.contains("driver")) continue;
    if (const std::string driver = system.line(all / name / "scaling_driver"); !driver.empty())
      out["driver"] = driver;
    const std::string preference = system.line(all / name / "energy_performance_preference");
    if (!preference.empty()) out["preference"] = preference;
  }
  if (!governors.empty()) out["governors"] = governors;
  return out;
}

ordered_json limit_facts(const system_tree& system) {
  ordered_json out = ordered_json::object();
  const std::string status = system.text("proc/self/status").value_or("");
  if (const auto cpus = field_of(status, "Cpus_allowed_list"); cpus && count_in(*cpus)) {
    out["cpus_allowed"] = *cpus;
    put(out, "cpus_allowed_count", count_in(*cpus));
  }
  put(out, "threads", system.number("proc/sys/kernel/threads-max"));
  const std::string limits = system.text("proc/self/limits").value_or("");
  put(out, "processes", limit_at(limits, "Max processes"));
  put(out, "open_files", limit_at(limits, "Max open files"));
  put(out, "locked_bytes", limit_at(limits, "Max locked memory"));
  put(out, "address_bytes", limit_at(limits, "Max address space"));
  put(out, "cgroup_version", cgroup_version(system));
  const group_limits groups = limits_of_groups(system);
  if (groups.cpus) out["cpu_quota"] = *groups.cpus;
  put(out, "cgroup_tasks", groups.tasks);
  put(out, "cgroup_memory_bytes", groups.memory);
  return out;
}

ordered_json memory_facts(const system_tree& system) {
  ordered_json out = ordered_json::object();
  const std::string memory = system.text("proc/meminfo").value_or("");
  put(out, "total_bytes", bytes_at(memory, "MemTotal"));
  auto free = bytes_at(memory, "MemAvailable");
  tighten(free, limits_of_groups(system).left);
  put(out, "free_bytes", free);
  put(out, "swap_total_bytes", bytes_at(memory, "SwapTotal"));
  put(out, "swap_free_bytes", bytes_at(memory, "SwapFree"));
  return out;
}

}  // namespace bitnet::host::doctor

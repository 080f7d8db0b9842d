#include "doctor/findings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "basic/json.hpp"

namespace bitnet::host::doctor {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

// The smallest useful models need about this much.
constexpr uint64_t little_memory = uint64_t{1} << 30U;  // bytes

bool nothing_computes(const json& runtime) {
  const std::string selected = member(runtime, "selected");
  return selected.empty() || selected == "none";
}

finding nothing_installed() {
  return {"backends", "no backend is installed", "install bitnet-backend-cpu"};
}

// The cpu backend's own reason if it is installed, else the first backend's.
finding nothing_usable(const json& runtime) {
  const json backends = list_of(runtime, "backends");
  if (backends.empty()) return nothing_installed();
  json worst = backends.front();
  for (const json& one : backends)
    if (any_member(one, "name") == "cpu") worst = one;
  const std::string hint = any_member(worst, "hint");
  const bool idle = any_member(worst, "code") == "BN-OK";
  return {"backends", "no backend can be used: " + member(runtime, "problem"),
          idle || hint.empty() ? "install bitnet-backend-cpu, or run `bitnet backends why`" : hint};
}

// Codes of an installed backend that is less reliable than its user may think.
bool is_alarming(const std::string& code) {
  return code == "BN-P-SELF-TEST" || code == "BN-P-CRASH" || code == "BN-P-QUARANTINE";
}

void add_alarms(const json& runtime, std::vector<finding>& out) {
  for (const json& one : list_of(runtime, "backends")) {
    const std::string name = any_member(one, "name");
    const std::string code = any_member(one, "code");
    if (is_alarming(code))
      out.push_back(
          {name, fmt::format("{}: {}", code, any_member(one, "reason")), any_member(one, "hint")});
    const json wrong = list_of(one.value("probe", json::object()), "wrong_results");
    if (!wrong.empty() && wrong.front().is_string())
      out.push_back({name,
                     fmt::format("a kernel failed the self-test, and is not used: {}",
                                 wrong.front().get<std::string>()),
                     "test the memory and the driver of its device; where both are sound, report "
                     "it to the author of the backend"});
  }
}

void add_devices(const std::vector<verdict>& devices, bool of_driven_machines,
                 std::vector<finding>& out) {
  const bool driven = std::ranges::any_of(
      devices, [](const verdict& v) { return v.state == device_state::driven; });
  if (driven != of_driven_machines) return;
  std::vector<const verdict*> sorted;
  for (const verdict& v : devices)
    if (!v.advice.empty()) sorted.push_back(&v);
  // Sorted by state, then in the given order, which is that of the pointers. Not
  // std::stable_sort: in libstdc++ 12 it calls what C++17 deprecated, and clang warns.
  std::ranges::sort(sorted, {}, [](const verdict* v) { return std::pair(v->state, v); });
  for (const verdict* v : sorted)
    out.push_back({v->device.address,
                   fmt::format("{}: {}", v->name.empty() ? v->device.vendor : v->name, v->problem),
                   v->advice});
}

uint64_t number_at(const ordered_json& from, const char* key, uint64_t otherwise) {
  const auto found = from.find(key);
  return found != from.end() && found->is_number_unsigned() ? found->get<uint64_t>() : otherwise;
}

void add_memory(const ordered_json& report, std::vector<finding>& out) {
  const ordered_json& memory = report["memory"];
  const uint64_t free = number_at(memory, "free_bytes", UINT64_MAX);
  if (free >= little_memory) return;
  const uint64_t limit = number_at(report["limits"], "cgroup_memory_bytes", UINT64_MAX);
  const bool by_group = limit < number_at(memory, "total_bytes", 0);
  out.push_back({"memory", fmt::format("{} MiB are free", free >> 20U),
                 by_group
                     ? fmt::format("raise the memory limit of the control group, which is {} MiB",
                                   limit >> 20U)
                     : "end other programs, or choose a smaller model"});
}

void add_quota(const ordered_json& report, std::vector<finding>& out) {
  const ordered_json& limits = report["limits"];
  if (!limits.contains("cpu_quota")) return;
  const auto quota = limits["cpu_quota"].get<double>();
  if (quota >= 1) return;
  out.push_back({"limits", fmt::format("the control group may use {:.2f} of one processor", quota),
                 "raise its quota (cpu.max, or --cpus of a container)"});
}

// For drivers that choose clocks themselves, "powersave" does not mean slow.
bool slows_down(const ordered_json& governor) {
  const std::string driver = governor.value("driver", "");
  const bool chooses = driver == "intel_pstate" || driver == "amd-pstate-epp";
  if (chooses) return governor.value("preference", "") == "power";
  for (const ordered_json& one : governor.value("governors", ordered_json::array()))
    if (one == "powersave") return true;
  return false;
}

void add_governor(const ordered_json& report, std::vector<finding>& out) {
  const ordered_json& governor = report["governor"];
  if (!slows_down(governor)) return;
  if (governor.value("preference", "") == "power")
    out.push_back({"governor", "processors prefer to save power",
                   "sudo cpupower set --perf-bias 0, or powerprofilesctl set performance"});
  else
    out.push_back({"governor", "the governor powersave keeps processors at their lowest clock",
                   "sudo cpupower frequency-set -g performance"});
}

void add_pages(const ordered_json& report, std::vector<finding>& out) {
  if (report["pages"].value("transparent", "") != "never") return;
  out.push_back(
      {"pages", "large pages are switched off",
       "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled, and see `bitnet "
       "bench` for what they gain"});
}

void add_caches(const ordered_json& report, std::vector<finding>& out) {
  for (const ordered_json& one : report["caches"])
    if (!one.value("writable", true))
      out.push_back(
          {"caches",
           fmt::format("{} cannot be written to, so that nothing is remembered",
                       one.value("folder", "")),
           fmt::format("give {} to this user, or set XDG_CACHE_HOME", one.value("folder", ""))});
}

}  // namespace

std::vector<finding> findings_in(const ordered_json& report, const json& runtime,
                                 const std::vector<verdict>& devices) {
  std::vector<finding> out;
  if (nothing_computes(runtime)) out.push_back(nothing_usable(runtime));
  add_alarms(runtime, out);
  add_devices(devices, false, out);
  add_memory(report, out);
  add_quota(report, out);
  add_governor(report, out);
  add_pages(report, out);
  add_devices(devices, true, out);
  add_caches(report, out);
  return out;
}

}  // namespace bitnet::host::doctor

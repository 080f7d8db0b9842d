#include "doctor/report.hpp"

#include <unistd.h>

#include <nlohmann/json.hpp>

#include "basic/json.hpp"
#include "doctor/findings.hpp"
#include "doctor/machine.hpp"
#include "doctor/nodes.hpp"
#include "doctor/verdicts.hpp"
#include "text/items.hpp"

namespace bitnet::host::doctor {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using nlohmann::ordered_json;

void put_known(ordered_json& out, const char* key, const std::string& value) {
  if (!value.empty()) out[key] = value;
}

ordered_json to_json(const verdict& v) {
  ordered_json out = {
      {"address", v.device.address}, {"vendor", v.device.vendor}, {"class", v.device.device_class}};
  put_known(out, "device", v.device.device);
  put_known(out, "name", v.name);
  put_known(out, "driver", v.device.driver);
  put_known(out, "driver_version", v.device.driver_version);
  out["state"] = state_name(v.state);
  put_known(out, "driven_by", v.driven_by);
  put_known(out, "problem", v.problem);
  put_known(out, "advice", v.advice);
  if (!v.packages.empty()) out["packages"] = v.packages;
  return out;
}

ordered_json to_json(const node& one) {
  ordered_json out = {{"path", one.path}, {"group", one.group}, {"usable", one.usable}};
  put_known(out, "address", one.address);
  if (!one.usable && one.by_group) out["join"] = one.group;
  return out;
}

// Parses "add: right; mul: element 3 is 2, not 1": {right: 1, wrong: ["mul: ..."]}.
ordered_json self_test_of(const std::string& summary) {
  constexpr std::string_view good = ": right";
  uint64_t right = 0;
  ordered_json others = ordered_json::array();
  for (const std::string_view item : text::items(summary, ';')) {
    if (item.ends_with(good))
      ++right;
    else if (!item.empty())
      others.push_back(item);
  }
  ordered_json out = {{"right", right}};
  if (!others.empty()) out["others"] = std::move(others);
  return out;
}

ordered_json device_of(const json& one) {
  ordered_json out = {{"index", number_of(any_member(one, "index")).value_or(0)}};
  for (const char* key : {"class", "name", "arch", "driver_version", "pci_address"})
    put_known(out, key, any_member(one, key));
  for (const char* key : {"memory_total_bytes", "memory_free_bytes", "rank"})
    if (const auto number = number_of(any_member(one, key))) out[key] = *number;
  return out;
}

ordered_json backend_of(const json& one) {
  ordered_json out;
  for (const char* key : {"name", "version", "stage", "code", "reason", "hint"})
    put_known(out, key, any_member(one, key));
  const json probe = one.value("probe", json::object());
  if (const std::string tests = any_member(probe, "self_test"); !tests.empty())
    out["self_test"] = self_test_of(tests);
  ordered_json devices = ordered_json::array();
  for (const json& device : list_of(one, "devices")) devices.push_back(device_of(device));
  if (!devices.empty()) out["devices"] = std::move(devices);
  return out;
}

// For a missing folder, the nearest existing parent decides whether it can be created.
bool is_writable(fs::path folder) {
  std::error_code error;
  while (!fs::exists(folder, error) && folder.has_relative_path()) folder = folder.parent_path();
  return access(folder.c_str(), W_OK) == 0;
}

ordered_json cache_of(const cache_place& one) {
  constexpr uint64_t most_files = 65'536;
  uint64_t files = 0, bytes = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator at(one.folder, error), end;
       !error && at != end && files < most_files; at.increment(error)) {
    std::error_code unknown;
    if (!at->is_regular_file(unknown) || at->is_symlink(unknown)) continue;
    const uint64_t size = at->file_size(unknown);
    ++files;
    if (!unknown) bytes += size;
  }
  return {{"name", one.name},
          {"folder", one.folder.string()},
          {"files", files},
          {"bytes", bytes},
          {"writable", is_writable(one.folder)}};
}

// The processor's form in use: "avx2" from the device's "x86-64 avx2".
std::string running_form(const json& runtime) {
  for (const json& one : list_of(runtime, "backends"))
    for (const json& device : list_of(one, "devices")) {
      const std::string arch = any_member(device, "arch");
      const auto blank = arch.find(' ');
      if (any_member(one, "name") == "cpu" && blank != std::string::npos)
        return arch.substr(blank + 1);
    }
  return "";
}

// Replaces other values by objects where objects are expected, so that no caller must check.
json with_objects(const json& runtime) {
  json out = runtime.is_object() ? runtime : json::object();
  json backends = json::array();
  for (json one : list_of(out, "backends")) {
    if (!one.is_object()) continue;
    if (!one.value("probe", json::object()).is_object()) one.erase("probe");
    backends.push_back(std::move(one));
  }
  out["backends"] = std::move(backends);
  return out;
}

}  // namespace

ordered_json examine(const system_tree& system, const sources& from) {
  const json runtime = with_objects(from.runtime);
  ordered_json out;
  out["machine"] = processor_facts(system);
  put_known(out["machine"], "runs", running_form(runtime));
  out["pages"] = page_facts(system);
  out["governor"] = governor_facts(system);
  out["limits"] = limit_facts(system);
  out["memory"] = memory_facts(system);
  const auto nodes = device_nodes(system);
  const auto devices =
      judge_devices(pci_devices(system), nodes, from.hints, list_of(runtime, "backends"));
  out["devices"] = ordered_json::array();
  for (const verdict& one : devices) out["devices"].push_back(to_json(one));
  out["nodes"] = ordered_json::array();
  for (const node& one : nodes) out["nodes"].push_back(to_json(one));
  put_known(out, "selected", member(runtime, "device"));
  out["backends"] = ordered_json::array();
  for (const json& one : list_of(runtime, "backends")) out["backends"].push_back(backend_of(one));
  out["caches"] = ordered_json::array();
  for (const cache_place& one : from.caches)
    if (!one.folder.empty()) out["caches"].push_back(cache_of(one));
  const auto findings = findings_in(out, runtime, devices);
  out["findings"] = ordered_json::array();
  for (const finding& one : findings)
    out["findings"].push_back(
        {{"about", one.about}, {"problem", one.problem}, {"advice", one.advice}});
  out["first"] = findings.empty() ? "" : findings.front().advice;
  return out;
}

}  // namespace bitnet::host::doctor

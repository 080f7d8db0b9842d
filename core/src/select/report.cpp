#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/host_memory.hpp"
#include "bitnet/abi/info.h"
#include "compute/kv_types.hpp"
#include "plugin/codes/text.hpp"
#include "plugin/manifest/manifest.hpp"
#include "select/device_status.hpp"
#include "select/selection.hpp"

namespace bitnet::select {
namespace {

using nlohmann::ordered_json;

// Unknown values are left out.
template <class Value>
void put(ordered_json& out, const char* key, const Value& value) {
  if (value != Value{}) out[key] = value;
}

ordered_json to_json(const bitnet_device_info& d, std::size_t index) {
  ordered_json out;
  out["index"] = index;
  out["class"] = plugin::class_name(d.device_class);
  put(out, "name", plugin::printable_array(d.name));
  put(out, "uuid", plugin::printable_array(d.uuid));
  put(out, "pci_address", plugin::printable_array(d.pci_address));
  put(out, "arch", plugin::printable_array(d.arch));
  put(out, "driver_version", plugin::printable_array(d.driver_version));
  put(out, "memory_total_bytes", d.memory_total_bytes);
  put(out, "compute_units", d.compute_units);
  put(out, "buffer_alignment_bytes", d.buffer_alignment_bytes);
  put(out, "max_allocation_bytes", d.max_allocation_bytes);
  out["kv_types"] = compute::kv_type_names(d);
  return out;
}

ordered_json to_json(const bitnet_kernel_info& k) {
  ordered_json out = {{"id", plugin::printable_array(k.id)},
                      {"op", k.op},
                      {"format", k.format},
                      {"level", level_name(k.level)}};
  if (const char* precision = precision_name(k.precision)) out["precision"] = precision;
  return out;
}

ordered_json to_json(const probe::outcome& f) {
  ordered_json out;
  out["stage"] = probe::stage_name(f.reached);
  uint32_t total_ms = 0;
  for (const uint32_t ms : f.stage_ms) total_ms += ms;
  out["time_ms"] = total_ms;
  out["cached"] = f.cached;
  if (f.cached) out["age_s"] = f.age_s;
  put(out, "retry_in_s", f.retry_in_s);
  put(out, "quarantined", f.quarantined);
  put(out, "sandbox", f.what.sandbox);
  put(out, "self_test", f.what.self_test);
  put(out, "disabled_kernels", f.what.disabled);
  put(out, "wrong_results", f.what.wrong_results);
  put(out, "peak_bytes", f.what.peak_bytes);
  put(out, "unloads", f.what.unloads);
  put(out, "output_bytes", f.output_bytes);
  put(out, "output", f.output);
  return out;
}

void add_standing(ordered_json& device, const backend_report& b, std::size_t i) {
  if (b.fake) device["fake"] = true;
  const auto s = i < b.standings.size() ? b.standings[i] : backend_report::standing{};
  device["usable"] = s.rank != 0;
  if (s.rank == 0) return;
  device["rank"] = s.rank;
  ordered_json facts = {{"class", plugin::class_name(s.facts.device_class)},
                        {"kernels", level_name(s.facts.kernels)}};
  put(facts, "memory_gib", s.facts.memory_gib);
  facts["priority"] = s.facts.priority;
  put(facts, "products_per_s", s.facts.rates.small);
  put(facts, "token_products_per_s", s.facts.rates.token);
  put(facts, "prompt_products_per_s", s.facts.rates.prompt);
  device["score"] = std::move(facts);
  put(device, "same_as", s.same_as);
}

// Free memory changes all the time, so it is read now. CPU devices use the host's memory; others
// may report theirs in their status.
void add_free_memory(ordered_json& device, const bitnet_device_info& d) {
  if (d.device_class != BITNET_DEVICE_CPU) return;
  const uint64_t total = d.memory_total_bytes == 0 ? UINT64_MAX : d.memory_total_bytes;
  put(device, "memory_free_bytes", std::min(free_host_memory(), total));
}

ordered_json to_json(const backend_report& b) {
  ordered_json out;
  out["name"] = b.name;
  out["stage"] = b.stage;
  out["code"] = b.code;
  out["reason"] = b.reason;
  out["hint"] = b.hint;
  put(out, "fake", b.fake);
  put(out, "manifest", b.manifest);
  put(out, "library", b.library);
  if (b.named != b.library) put(out, "library_named", b.named);
  put(out, "version", b.version);
  put(out, "vendor", b.vendor);
  put(out, "license", b.license);
  put(out, "build_id", b.build_id);
  put(out, "abi", b.abi);
  for (const std::string& one : b.environment)
    out["environment"].push_back(plugin::printable(one, 1024));
  if (b.probed) {
    // false: it has threads of its own, or none
    out["host_threads"] = (b.probed->what.life_flags & BITNET_LIFE_USES_HOST_POOL) != 0;
    out["probe"] = to_json(*b.probed);
  }
  ordered_json devices = ordered_json::array();
  ordered_json kernels = ordered_json::array();
  for (std::size_t i = 0; i < b.devices.size(); ++i) {
    devices.push_back(to_json(b.devices[i].info, i));
    if (!b.fake) add_free_memory(devices.back(), b.devices[i].info);
    if (b.probed)
      if (auto s = asked_by_probe(b.devices[i].status, b.probed->age_s); !s.is_null())
        devices.back()["status"] = std::move(s);
    add_standing(devices.back(), b, i);
    for (const bitnet_kernel_info& k : b.devices[i].kernels)
      if (ordered_json one = to_json(k);
          std::find(kernels.begin(), kernels.end(), one) == kernels.end())
        kernels.push_back(std::move(one));
  }
  out["devices"] = std::move(devices);
  if (!kernels.empty()) out["kernels"] = std::move(kernels);
  return out;
}

}  // namespace

std::string choice::device_name() const {
  return backend->name() + ":" + std::to_string(device_index);
}

std::string report::line() const {
  return fmt::format("requested={} detected=[{}] selected={}", requested,
                     plugin::join(detected, ","), selected.empty() ? "none" : selected);
}

std::string report::json() const {
  ordered_json out;
  out["requested"] = requested;
  out["requested_by"] = requested_by;
  out["detected"] = detected;
  out["selected"] = selected.empty() ? "none" : selected;
  put(out, "fake", std::ranges::any_of(backends, &backend_report::fake));
  put(out, "device", selected_device);
  put(out, "fallback", fell_back);
  out["backends"] = ordered_json::array();
  for (const backend_report& b : backends) out["backends"].push_back(to_json(b));
  out["searched"] = ordered_json::array();
  for (const auto& [path, result] : searched)
    out["searched"].push_back({{"directory", path}, {"result", result}});
  // Replaces invalid UTF-8, which paths may contain.
  return out.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace bitnet::select

#include "service/runtime_metrics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "basic/json.hpp"

namespace bitnet::host {
namespace {

std::string joined(const nlohmann::json& names) {
  std::string out;
  for (const auto& name : names)
    if (name.is_string()) out += (out.empty() ? "" : ",") + name.get<std::string>();
  return out;
}

// The first copy of a backend's file is generation 1.
double reloads_of(const nlohmann::json& backend) {
  int64_t last = 1;
  for (const auto& one : list_of(backend, "generations"))
    if (one.is_object() && one.contains("number") && one["number"].is_number_integer())
      last = std::max(last, one["number"].get<int64_t>());
  return static_cast<double>(last - 1);
}

}  // namespace

void write_runtime(metrics_text& to, const nlohmann::json& build, const nlohmann::json& report) {
  to.begin("bitnet_build_info", "gauge", "The program and the contract of its backends.");
  to.sample(1, {{"version", any_member(build, "version")},
                {"abi", fmt::format("{}.{}", any_member(build, "abi_major"),
                                    any_member(build, "abi_minor"))},
                {"compiler", any_member(build, "compiler")}});
  to.begin("bitnet_selection_info", "gauge",
           "The backend that was asked for, and what came of it.");
  to.sample(1, {{"requested", member(report, "requested")},
                {"detected", joined(list_of(report, "detected"))},
                {"selected", member(report, "selected")}});
  const nlohmann::json backends = list_of(report, "backends");
  to.begin("bitnet_backend_usable", "gauge", "1: it can compute here; else `code` says why not.");
  for (const auto& one : backends)
    to.sample(member(one, "code") == "BN-OK" ? 1 : 0,
              {{"backend", member(one, "name")}, {"code", member(one, "code")}});
  to.begin("bitnet_backend_reloads_total", "counter",
           "Times that a new copy took a backend's place.");
  for (const auto& one : backends)
    if (one.is_object() && one.contains("generations"))
      to.sample(reloads_of(one), {{"backend", member(one, "name")}});
}

}  // namespace bitnet::host

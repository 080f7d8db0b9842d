#pragma once
// The whole report of `bitnet doctor`, as JSON and as text, with the first thing to do.

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "doctor/hints.hpp"
#include "doctor/system_tree.hpp"

namespace bitnet::host::doctor {

// A folder that keeps something between runs.
struct cache_place {
  std::string name;              // "probes"
  std::filesystem::path folder;  // "" where there is none
};

// Inputs of the report besides the system's files.
struct sources {
  const hardware_hints& hints;
  const nlohmann::json& runtime;  // of bitnet_runtime_report(), after all probes have ended
  std::vector<cache_place> caches;
};

// {machine, pages, governor, limits, memory, devices, nodes, backends, caches, findings: [{about,
// problem, advice}], first}. The most important finding comes first; "first" repeats its advice,
// and is empty if there is nothing to do. Unknown members are left out.
[[nodiscard]] nlohmann::ordered_json examine(const system_tree& system, const sources& from);

// The report for people. Its last line begins with "first: ".
[[nodiscard]] std::string report_text(const nlohmann::ordered_json& report);

}  // namespace bitnet::host::doctor

#pragma once
// All that `bitnet doctor` reports, as JSON and as text, and what to do first.

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "doctor/hints.hpp"
#include "doctor/system_tree.hpp"

namespace bitnet::host::doctor {

// A folder in which something is remembered between runs.
struct cache_place {
  std::string name;              // "probes"
  std::filesystem::path folder;  // "" where there is none
};

// What the report is made of, beside the system's files.
struct sources {
  const hardware_hints& hints;
  const nlohmann::json& runtime;  // as bitnet_runtime_report() has it, once all probes have ended
  std::vector<cache_place> caches;
};

// {machine, pages, governor, limits, memory, devices, nodes, backends, caches, findings: [{about,
// problem, advice}], first}. Findings come in the order in which they count; "first" is the advice
// of the first one, and empty where nothing is to be done. What is unknown is left out.
[[nodiscard]] nlohmann::ordered_json examine(const system_tree& system, const sources& from);

// The report for people. Its last line begins with "first: ".
[[nodiscard]] std::string report_text(const nlohmann::ordered_json& report);

}  // namespace bitnet::host::doctor

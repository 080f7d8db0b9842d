#pragma once
// Metrics of backends: which was requested and selected, which are usable, and how often each was
// reloaded.

#include <nlohmann/json_fwd.hpp>

#include "service/metrics_text.hpp"

namespace bitnet::host {

// `build`: bitnet_build_info, with the program's version as `version`. `report`:
// bitnet_runtime_report.
void write_runtime(metrics_text& to, const nlohmann::json& build, const nlohmann::json& report);

}  // namespace bitnet::host

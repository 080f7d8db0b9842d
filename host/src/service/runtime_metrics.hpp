#pragma once
// What computes, as metrics: which backend was asked for and selected, which can be used, and how
// often each was reloaded.

#include <nlohmann/json_fwd.hpp>

#include "service/metrics_text.hpp"

namespace bitnet::host {

// `build`: of bitnet_build_info, with the version as `version`. `report`: of bitnet_runtime_report.
void write_runtime(metrics_text& to, const nlohmann::json& build, const nlohmann::json& report);

}  // namespace bitnet::host

#pragma once
// What /metrics gives: vLLM's names with vLLM's meanings, which routers and dashboards know, from
// the scheduler's report and from the events of requests; bitnet's own facts as bitnet_*.
//
// Threads: one at a time; the service's loop.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "service/request_metrics.hpp"

namespace bitnet::host {

struct metrics_facts {
  std::string model_name;  // as /v1/models has it
  std::string version;
  double load_seconds = 0;  // of the model
  std::size_t n_connections = 0;
  double now_seconds = 0;  // since 1970
};

// The whole text. `report`: of bitnet_scheduler_report.
[[nodiscard]] std::string metrics_of(const metrics_facts& about, const nlohmann::json& report,
                                     const request_metrics& requests);

}  // namespace bitnet::host

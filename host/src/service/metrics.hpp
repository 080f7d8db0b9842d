#pragma once
// What /metrics gives: vLLM's names with vLLM's meanings, which routers and dashboards know, from
// the scheduler's report and from the events of requests; bitnet's own facts as bitnet_*.
//
// Threads: one at a time; the service's loop.

#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "service/request_metrics.hpp"

namespace bitnet::host {

struct metrics_facts {
  std::string version;
  std::size_t n_connections = 0;
  double now_seconds = 0;  // since 1970
};

// Of a model that is loaded.
struct model_metrics {
  std::string model_name;   // as /v1/models has it
  double load_seconds = 0;  // that it took
  nlohmann::json report;    // of bitnet_scheduler_report
  nlohmann::json shadow{};  // of bitnet_shadow_report; null: there is none
};

// Of the requests to a model, loaded or not.
struct request_counts {
  std::string model_name;  // "": requests that were refused before a model was known
  uint32_t n_context = 0;  // 0: not known
  const request_metrics* counts = nullptr;
};

// The whole text.
[[nodiscard]] std::string metrics_of(const metrics_facts& about,
                                     std::span<const model_metrics> models,
                                     std::span<const request_counts> requests);

}  // namespace bitnet::host

#pragma once
// The text of /metrics. It uses vLLM's names and meanings, which routers and dashboards know, for
// values from the scheduler's report and from request events. bitnet's own facts are bitnet_*.
//
// Threads: the service's loop.

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

// Metrics of a loaded model.
struct model_metrics {
  std::string model_name;   // as in /v1/models
  double load_seconds = 0;  // how long loading took
  nlohmann::json report;    // bitnet_scheduler_report
  nlohmann::json shadow{};  // bitnet_shadow_report; null: no shadow
};

// Counts of the requests to a model, loaded or not.
struct request_counts {
  std::string model_name;  // "": rejected before a model was known
  uint32_t n_context = 0;  // 0: unknown
  const request_metrics* counts = nullptr;
};

// Returns the whole text.
[[nodiscard]] std::string metrics_of(const metrics_facts& about,
                                     std::span<const model_metrics> models,
                                     std::span<const request_counts> requests);

}  // namespace bitnet::host

#pragma once
// What /metrics gives: vLLM's names with vLLM's meanings, which routers and dashboards know, from
// the scheduler's report and from the events of requests; bitnet's own facts as bitnet_*.
//
// Threads: one at a time; the service's loop.

#include <array>
#include <chrono>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "bitnet/bitnet.h"
#include "service/metrics_text.hpp"

namespace bitnet::host {

// Counted over all requests since the start, in seconds and tokens.
class request_metrics {
 public:
  using time = std::chrono::steady_clock::time_point;
  request_metrics();

  void first_token_after(double seconds) { first_token_.add(seconds); }
  void next_token_after(double seconds) { between_tokens_.add(seconds); }
  // An END or FAILED event. `seconds`: since the request came.
  void choice_ended(const bitnet_event& end, double seconds);
  // A request that was refused before it was queued, with the status that its client got.
  void refused(int status);

  void write(metrics_text& to) const;

 private:
  enum class finish : uint8_t { stop, length, abort, error, count };

  std::array<uint64_t, static_cast<std::size_t>(finish::count)> finished_{};
  std::vector<std::pair<int, uint64_t>> refused_;  // by status
  histogram first_token_, between_tokens_, whole_, queue_, prefill_, decode_;
};

// The times of one request, fed with its events as they come.
class request_times {
 public:
  using time = request_metrics::time;
  request_times(request_metrics& to, time came) : to_(to), came_(came) {}
  void take(const bitnet_event& e, time now);

 private:
  request_metrics& to_;
  time came_;
  std::vector<time> last_;  // token of each choice; came_ before the first one
  std::vector<bool> has_token_;
};

struct metrics_facts {
  std::string model_name;  // as /v1/models has it
  std::string version;
  double load_seconds = 0;  // of the model
  std::size_t n_connections = 0;
};

// The whole text. `report`: of bitnet_scheduler_report.
[[nodiscard]] std::string metrics_of(const metrics_facts& about, const nlohmann::json& report,
                                     const request_metrics& requests);

}  // namespace bitnet::host

#pragma once
// Sizes and times of requests, counted from their events under vLLM's names.
//
// Threads: the service's loop.

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "bitnet/bitnet.h"
#include "service/metrics_text.hpp"

namespace bitnet::host {

// Parameters of a request for texts.
struct request_params {
  uint32_t n = 1;           // choices
  int32_t max_tokens = -1;  // per choice; -1: not given
};

// Totals over all requests since the start, in seconds and tokens.
class request_metrics {
 public:
  using time = std::chrono::steady_clock::time_point;
  request_metrics();

  void first_token_after(double seconds) { first_token_.add(seconds); }
  void next_token_after(double seconds) { between_tokens_.add(seconds); }
  // Takes an END or FAILED event. `seconds`: since the request came. `asked`: none for embeddings.
  // Returns whether the choice was neither cancelled nor failed.
  bool choice_ended(const bitnet_event& end, double seconds,
                    const std::optional<request_params>& asked);
  // Call it when all choices of a request have ended and at least one was neither cancelled nor
  // failed.
  void request_ended(const request_params& asked) { params_n_.add(asked.n); }
  // Counts a request that was rejected before it was queued, by its HTTP status.
  void rejected(int status);

  // `n_context`: largest bucket of the token histograms; 0: all buckets.
  void write(metrics_text& to, uint32_t n_context) const;

 private:
  enum class finish : uint8_t { stop, length, abort, error, count };

  std::array<uint64_t, static_cast<std::size_t>(finish::count)> finished_{};
  std::vector<std::pair<int, uint64_t>> rejected_;  // by status
  histogram first_token_, between_tokens_, per_token_;
  histogram whole_, queue_, prefill_, decode_, inference_;
  histogram prompt_tokens_, computed_tokens_, generation_tokens_, params_n_, params_max_tokens_;
};

// The times of one request; take its events as they come.
class request_times {
 public:
  using time = request_metrics::time;
  request_times(request_metrics& to, time came, std::optional<request_params> asked = {})
      : to_(to), came_(came), asked_(asked) {}
  void take(const bitnet_event& e, time now);

 private:
  void take_end(const bitnet_event& e, time now);

  request_metrics& to_;
  time came_;
  std::optional<request_params> asked_;  // none for embeddings
  std::vector<time> last_;               // last token of each choice; at first came_
  std::vector<bool> has_token_;
  uint32_t n_ended_ = 0;
  bool has_answer_ = false;
};

}  // namespace bitnet::host

#pragma once
// Measurements of one client request over all its prompts and choices, for its trace.
//
// Threads: the service's loop.

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "bitnet/bitnet.h"
#include "log/log_line.hpp"

namespace bitnet::host {

class request_facts {
 public:
  using time = std::chrono::steady_clock::time_point;

  explicit request_facts(time came) : came_(came) {}
  // Takes each event as it comes.
  void take(const bitnet_event& e, time now);
  // Named by OpenTelemetry's conventions for generative AI and, for times, by vLLM: tokens of
  // prompts and answers, seconds. Unknown values are left out.
  [[nodiscard]] std::vector<log_field> fields() const;

 private:
  time came_;
  std::optional<time> first_token_;
  uint32_t n_ended_ = 0;  // choices
  uint64_t n_prompt_ = 0, n_cached_ = 0, n_generated_ = 0;
  uint64_t queue_ns_ = 0, prompt_ns_ = 0, generate_ns_ = 0;  // the longest of all choices
};

}  // namespace bitnet::host

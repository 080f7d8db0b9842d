#pragma once
// What one request of a client took and got, over all its prompts and choices: for its trace.
//
// Threads: one at a time; the service's loop.

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
  // Each event, as it comes.
  void take(const bitnet_event& e, time now);
  // Under the names of OpenTelemetry's conventions for generative AI and, for times, of vLLM:
  // tokens of the prompts and of the answers, seconds. What is not known is left out.
  [[nodiscard]] std::vector<log_field> fields() const;

 private:
  time came_;
  std::optional<time> first_token_;
  uint32_t n_ended_ = 0;  // choices
  uint64_t n_prompt_ = 0, n_cached_ = 0, n_generated_ = 0;
  uint64_t queue_ns_ = 0, prompt_ns_ = 0, generate_ns_ = 0;  // the longest of a choice
};

}  // namespace bitnet::host

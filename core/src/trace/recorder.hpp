#pragma once
// Reports the work of one runner of steps: spans that the host measured, and the kernels of a step
// if the backend counts them. docs/reference/trace.md.
//
// Owner    The callback and its argument outlive the recorder.
// Threads  one at a time: the runner's thread.

#include <chrono>
#include <cstdint>
#include <span>
#include <string>

#include "bitnet/abi/program.h"
#include "bitnet/bitnet.h"

namespace bitnet::trace {

// The program's callback for events. Without one there is no recorder.
struct listener {
  bitnet_trace_callback call = nullptr;
  void* user = nullptr;
  bool times = false;  // time kernels, which has a cost
};

class recorder {
 public:
  using clock = std::chrono::steady_clock;
  explicit recorder(const listener& to);

  // Begins a step; later events belong to it until the next one.
  void begin_step(uint32_t n_sequences, uint32_t n_tokens, uint32_t n_outputs);
  void end_step(bitnet_status status) const;
  // A device got the step between `begin` and `submitted`, and finished it `now`.
  void ran_on(const std::string& device, clock::time_point begin, clock::time_point submitted,
              bitnet_status status) const;
  // Sums of a step on that device, read just now.
  void kernels(const std::string& device, std::span<const bitnet_kernel_stat> did) const;
  // Tokens of the last step's rows were sampled.
  void sampled(clock::time_point begin) const;

 private:
  [[nodiscard]] bitnet_trace_event event(uint32_t kind, clock::time_point begin,
                                         clock::time_point end) const;
  const listener to_;
  bitnet_trace_event step_{};  // the members that all events of the step share
  clock::time_point began_{};
};

// Measures how long sampling takes; without a recorder it does nothing.
class sampling_span {
 public:
  explicit sampling_span(const recorder* to) : to_(to) {
    if (to_ != nullptr) begin_ = recorder::clock::now();
  }
  ~sampling_span() {
    if (to_ != nullptr) to_->sampled(begin_);
  }
  sampling_span(const sampling_span&) = delete;
  sampling_span& operator=(const sampling_span&) = delete;

 private:
  const recorder* const to_;
  recorder::clock::time_point begin_{};
};

}  // namespace bitnet::trace

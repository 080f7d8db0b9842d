#pragma once
// What one runner of steps reports while it works: spans that the host measured, and what kernels
// did in a step as far as their backend counts it. docs/reference/trace.md.
//
// Owner    the callback and what it is given outlive the recorder.
// Threads  one at a time: that of the runner.

#include <chrono>
#include <cstdint>
#include <span>
#include <string>

#include "bitnet/abi/program.h"
#include "bitnet/bitnet.h"

namespace bitnet::trace {

// The callback that gets the events. Without one there is no recorder.
struct listener {
  bitnet_trace_callback call = nullptr;
  void* user = nullptr;
  bool times = false;  // of kernels, which cost something
};

class recorder {
 public:
  using clock = std::chrono::steady_clock;
  explicit recorder(const listener& to);

  // The step that follows, which all events belong to until the next one.
  void begin_step(uint32_t n_sequences, uint32_t n_tokens, uint32_t n_outputs);
  void end_step(bitnet_status status) const;
  // A device was given the step between `begin` and `submitted`, and was done `now`.
  void ran_on(const std::string& device, clock::time_point begin, clock::time_point submitted,
              bitnet_status status) const;
  // Sums of a step on that device, which were read now.
  void kernels(const std::string& device, std::span<const bitnet_kernel_stat> did) const;
  // Tokens were sampled of the last step's rows.
  void sampled(clock::time_point begin) const;

 private:
  [[nodiscard]] bitnet_trace_event event(uint32_t kind, clock::time_point begin,
                                         clock::time_point end) const;
  const listener to_;
  bitnet_trace_event step_{};  // what all events of the step have
  clock::time_point began_{};
};

// Notes how long tokens are sampled; without a recorder it does nothing.
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

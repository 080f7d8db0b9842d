#pragma once
// The record of one request of a scheduler, for a receipt: counters of the steps that have tokens
// of it, and how each of its choices ended.
//
// The kernels of a step compute the tokens of all its sequences at once, so no counter is of one
// request alone. The numbers beside the counters say how much of those steps was the request's own.
//
// Threads  ended() any; the rest is the scheduler's.

#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "engine/device_use.hpp"
#include "schedule/step_observer.hpp"

namespace bitnet::serving {

class request_record final : public schedule::step_observer {
 public:
  struct counts {
    std::vector<engine::device_use> ran;  // in these steps, of all their sequences
    uint64_t steps = 0;                   // that the request had tokens in
    uint64_t own_tokens = 0;              // of all its choices, in these steps
    uint64_t step_tokens = 0;             // of all sequences, in these steps
    uint64_t sequences = 0;               // of these steps, added up
    uint32_t most_sequences = 0;          // of the step that had most
  };
  struct choice {
    uint32_t number = 0;  // of the choice, among all that were generated
    std::vector<int32_t> tokens;
    uint32_t stop_reason = 0;
    schedule::usage used;
    failure why;  // BITNET_OK: it did not fail
    counts counted;
  };

  // nullopt: the choice has not ended.
  [[nodiscard]] std::optional<choice> ended(uint32_t number) const;

  void enter(const schedule::step_runner& runner) override;
  void leave(const schedule::step_runner& runner) override;
  void note(const schedule::step_part& part) override;
  void end(const schedule::event& e, std::span<const int32_t> tokens) override;

 private:
  // Used by the scheduler's thread only.
  std::optional<std::vector<engine::device_use>> before_;  // the counters when it entered
  counts counts_;

  mutable std::mutex mutex_;  // guards the members below
  std::vector<choice> ended_;
};

}  // namespace bitnet::serving

#pragma once
// Observes a request: the steps that have tokens of it, and the end of each of its choices.
//
// Threads  the scheduler's, with no lock held.

#include <cstdint>
#include <span>

#include "schedule/request.hpp"
#include "schedule/step.hpp"

namespace bitnet::schedule {

// A step that the request has tokens in.
struct step_part {
  uint64_t own_tokens = 0;  // of all its choices
  uint64_t tokens = 0;      // of all sequences
  uint32_t sequences = 0;   // that have tokens in it
};

class step_observer {
 public:
  step_observer() = default;
  step_observer(const step_observer&) = delete;
  step_observer& operator=(const step_observer&) = delete;
  virtual ~step_observer() = default;

  // From now on until leave() the request has tokens in each step of this runner. The two calls
  // alternate; between them the runner stays the same.
  virtual void enter(const step_runner& runner) = 0;
  virtual void leave(const step_runner& runner) = 0;
  // A step begins, which may fail.
  virtual void note(const step_part& part) = 0;
  // A choice has ended, by an event of the kind end or failed; `tokens` are those that it
  // generated. Called after leave().
  virtual void end(const event& e, std::span<const int32_t> tokens) = 0;
};

}  // namespace bitnet::schedule

#pragma once
// The requests of the step that runs, and the flag by which the device ends the step early: it is
// set when none of them needs what the step computes, since each was cancelled or is past its
// deadline. While one request needs the step, the step is not ended early, so that this request
// loses no work.
//
// Owner    the inbox, whose lock guards all of it. The flag is the caller's and outlives this.
// Threads  one at a time; the flag is read by any.

#include <span>
#include <vector>

#include "base/cancel_flags.hpp"
#include "schedule/request.hpp"

namespace bitnet::schedule {

// A request with a slice in the step.
struct step_member {
  ticket of = 0;
  time_point deadline = time_point::max();  // max(): none
};

class running_step {
 public:
  // `flag` is one that cancel_flags::make() returned; nullptr: steps are computed to their end.
  explicit running_step(cancel_flags::flag* flag) : flag_(flag) {}

  // A step of these requests begins. A request with several slices may be named several times.
  void begin(std::span<const step_member> members);
  // The request, if it is in the step, does not need the step any more.
  void cancel(ticket t);
  // No request needs it any more.
  void cancel_all();
  // The step has ended. Returns whether the flag was set to end it early.
  bool end();

 private:
  void judge();

  cancel_flags::flag* const flag_;
  std::vector<step_member> needed_by_;
  bool runs_ = false;
};

}  // namespace bitnet::schedule

// SPDX-License-Identifier: Apache-2.0 OR MIT
#pragma once
// Number of workers that share a step of one token. They meet some 300 times in it, so a worker
// whose core another process uses delays all others while it is stopped: then one worker fewer can
// be faster. Once workers wait so long that they sleep, the number is found by timing the steps.
//
// Cost     none while no worker sleeps; else a few steps of every fifty use the other number.
// Threads  one at a time.

#include <cstdint>

namespace bitnet::sdk {

class team_size {
 public:
  // Workers for the next step, at most `most`.
  uint32_t next(uint32_t most) noexcept {
    if (most != most_) {
      *this = team_size();
      most_ = size_ = most;
    }
    return tries_ == 0 ? size_ : tries_;
  }

  // Reports the time of the step, and the waits in it that ended in sleep.
  void took(uint64_t ns, uint64_t sleeps) noexcept {
    sum_ += ns;
    sleeps_ += sleeps;
    ++steps_;
    if (tries_ != 0) return compare(ns);
    if (steps_ < together) return;
    mean_ = sum_ / steps_;
    const bool late = sleeps_ >= together * many_sleeps;
    rest_ -= rest_ < together ? rest_ : together;
    sum_ = sleeps_ = steps_ = 0;
    if (rest_ != 0) return;
    const bool more = size_ < most_ && (!late || less_ || size_ == 1);
    less_ = !more && late && size_ > 1;
    if (more) tries_ = size_ + 1;
    if (less_) tries_ = size_ - 1;
  }

 private:
  // Steps that are averaged, and steps that pass after a trial.
  static constexpr uint64_t together = 4, rests = 48;
  // Per step. An undisturbed step has a few.
  static constexpr uint64_t many_sleeps = 16;

  // Ends a trial at its last step, or as soon as a step is clearly slower.
  void compare(uint64_t ns) noexcept {
    if (steps_ < together && ns < mean_ + mean_ / 4) return;
    if (sum_ / steps_ < mean_ - mean_ / 16) size_ = tries_;
    tries_ = 0;
    rest_ = rests;
    sum_ = sleeps_ = steps_ = 0;
  }

  uint32_t most_ = 0, size_ = 0;
  uint32_t tries_ = 0;  // 0: no trial
  bool less_ = false;   // the last trial was of one fewer; the next is of one more
  uint64_t sum_ = 0, sleeps_ = 0, steps_ = 0, mean_ = 0, rest_ = 0;
};

}  // namespace bitnet::sdk

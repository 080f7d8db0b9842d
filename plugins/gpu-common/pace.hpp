#pragma once
// How a thread waits for a step: it sleeps through most of what the step took last time, and then
// looks again and again, so that the end is noticed within microseconds. Steps that are long are
// not worth that.

#include <algorithm>
#include <chrono>

namespace bitnet::gpu {

class pace {
 public:
  using duration = std::chrono::nanoseconds;

  // `expected`: what the step took last time; zero if that is not known.
  constexpr explicit pace(duration expected) noexcept : expected_(expected) {}

  // How long the thread sleeps when it has waited so long; zero: it looks again at once.
  constexpr duration nap(duration waited) const noexcept {
    using namespace std::chrono_literals;
    constexpr duration late = 150us;  // by which a thread may wake up later
    constexpr duration eager = 2ms;   // in which it looks, around what is expected
    constexpr duration longest = 200us, step_of_short = 20ms;
    const duration from = expected_ * 4 / 5 - late;
    if (waited < from) return from - waited;
    if (expected_ > step_of_short) return longest;
    return waited < expected_ * 5 / 4 + eager ? duration::zero() : longest;
  }

  // What is expected next time of a step that was seen to run until `running` and was done at
  // `done`: if the thread has slept between, it may have ended long before.
  static constexpr duration next(duration running, duration done) noexcept {
    using namespace std::chrono_literals;
    return done - running < 400us ? done : running;
  }

 private:
  duration expected_;
};

}  // namespace bitnet::gpu

#pragma once
// Decides how a thread waits for a step. The thread sleeps for most of the time that the step took
// last, then polls, so that it notices the end within microseconds. Of a long step, whose time
// differs little from the last one's, it polls the last millisecond; one that takes longer than
// expected is polled every 200 us.

#include <algorithm>
#include <chrono>

namespace bitnet::gpu {

class pace {
 public:
  using duration = std::chrono::nanoseconds;

  // `expected`: the time that the step took last; zero: unknown.
  constexpr explicit pace(duration expected) noexcept : expected_(expected) {}

  // Returns how long the thread sleeps after it has waited for `waited`; zero: it polls at once.
  constexpr duration nap(duration waited) const noexcept {
    using namespace std::chrono_literals;
    constexpr duration late = 150us;  // a sleep may end later by this time
    constexpr duration longest = 200us, step_of_short = 20ms;
    const bool is_long = expected_ > step_of_short;
    // The thread polls between these two times.
    const duration from = (is_long ? expected_ - 1ms : expected_ * 4 / 5) - late;
    const duration until = is_long ? expected_ + 1ms : expected_ * 5 / 4 + 2ms;
    if (waited < from) return from - waited;
    return waited < until ? duration::zero() : longest;
  }

  // Returns the expected time for the next run. The last poll that saw the step running was at
  // `running`, and the first one that saw it finished was at `done`. If the thread slept long
  // between the two, the step may have ended soon after `running`.
  static constexpr duration next(duration running, duration done) noexcept {
    using namespace std::chrono_literals;
    return done - running < 400us ? done : running;
  }

 private:
  duration expected_;
};

}  // namespace bitnet::gpu

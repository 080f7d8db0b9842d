// How late a thread notices the end of a step, by a clock that is made up: it sleeps longer than it
// asked for, and a look takes time.

#include "gpu-common/streams/pace.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace bitnet::cuda::test {
namespace {

using namespace std::chrono_literals;
using gpu::pace;
using duration = pace::duration;

constexpr duration look = 3us, overslept = 80us;

struct noticed {
  duration late, asleep, expected;  // asleep: of the wait; expected: next time
};
noticed wait_for(duration step, duration expected) {
  const pace how(expected);
  duration now = 0ns, running = 0ns, asleep = 0ns;
  while (now < step) {
    running = now;
    const duration nap = how.nap(now);
    if (nap != 0ns) asleep += nap + overslept;
    now += look + (nap == 0ns ? 0ns : nap + overslept);
  }
  return {now - step, asleep, pace::next(running, now)};
}

TEST(pace, a_step_that_took_as_long_before_is_noticed_within_10_us) {
  for (const duration step : {50us, 300us, 900us, 2000us, 7000us, 16000us})
    for (const int percent : {85, 95, 100, 105, 115}) {
      const noticed one = wait_for(step, step * 100 / percent);
      EXPECT_LE(one.late, 10us) << step / 1us << " us, " << percent;
      if (step >= 2ms) {
        EXPECT_GE(one.asleep, step / 2) << step / 1us;
      }
    }
}
TEST(pace, so_is_a_short_one_of_which_nothing_is_known) {
  for (const duration step : {20us, 500us, 1900us}) EXPECT_LE(wait_for(step, 0ns).late, 10us);
}
TEST(pace, what_is_expected_settles) {
  for (const duration step : {400us, 1500us, 15000us})
    for (const duration wrong : {0us, 100us, 60000us}) {
      duration expected = wrong;
      for (int i = 0; i < 6; ++i) expected = wait_for(step, expected).expected;
      const noticed last = wait_for(step, expected);
      EXPECT_LE(last.late, 10us) << step / 1us << " after " << wrong / 1us;
    }
}
TEST(pace, a_long_step_is_slept_through_and_noticed_within_10_us) {
  for (const duration step : {25ms, 60ms, 300ms})
    for (const duration off : {-700us, 0us, 700us}) {
      const noticed one = wait_for(step, step + off);
      EXPECT_LE(one.late, 10us) << step / 1us << " us, " << off / 1us;
      EXPECT_GE(one.asleep, step - 3ms) << step / 1us;
    }
}
TEST(pace, a_long_step_that_takes_longer_than_expected_is_noticed_within_a_millisecond) {
  const noticed one = wait_for(300ms, 250ms);
  EXPECT_LE(one.late, 1ms);
  EXPECT_GE(one.asleep, 250ms);
}

}  // namespace
}  // namespace bitnet::cuda::test

#pragma once
// How the work for a text grows with its length, where nothing counts it: by the processor's time
// of the thread, which other processes do not add to.
//
// A text of 16 times the length takes 16 times the time where the work is linear, and 256 times
// where it is the square; the limit lies between them. The best of several tries counts, and no
// time is an absolute one, so that slow and busy machines give the same answer.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <ctime>
#include <string>
#include <string_view>

namespace bitnet::testing_support {

inline double cpu_seconds() {
  timespec now{};
  (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

inline std::string times(std::size_t n, std::string_view part) {
  std::string out;
  out.reserve(n * part.size());
  for (std::size_t i = 0; i < n; ++i) out += part;
  return out;
}

// `work(n)` does what is measured for a text of n parts.
template <class Work>
void expect_linear(std::string_view what, std::size_t n, const Work& work) {
  constexpr std::size_t longer = 16;
  constexpr double limit = 80;
  const auto taken = [&](std::size_t size, int tries) {
    double least = 1e9;
    for (int i = 0; i < tries; ++i) {
      const double begin = cpu_seconds();
      work(size);
      least = std::min(least, cpu_seconds() - begin);
    }
    return least;
  };
  double ratio = 0;
  for (int tries = 0; tries < 3; ++tries) {
    ratio = taken(n * longer, 1) / std::max(taken(n, 5), 1e-6);
    if (ratio < limit) return;
  }
  ADD_FAILURE() << what << ": a text of " << longer << " times the length takes " << ratio
                << " times the work";
}

}  // namespace bitnet::testing_support

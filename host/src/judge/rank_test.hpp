#pragma once
// Tests whether one set of measurements is larger than another, without assuming a distribution:
// the Mann-Whitney U test, and the ratio of the two with its confidence interval (Hodges and
// Lehmann).
//
// Exact   up to most_exact values in all: it counts every way to share them out, ties included.
//         Above that, the normal approximation, corrected for ties and continuity.

#include <cstddef>
#include <span>

namespace bitnet::host::judge {

inline constexpr std::size_t most_exact = 60;

struct rank_test {
  double u = 0;        // pairs in which b is larger, ties counting half
  double p = 1;        // two-sided
  double least_p = 1;  // the smallest p possible with so few values
  bool exact = true;
};
// Both need at least one value.
[[nodiscard]] rank_test mann_whitney(std::span<const double> a, std::span<const double> b);

struct ratio_interval {
  double ratio = 1;  // the median of b[j] / a[i]
  double low = 1, high = 1;
  double confidence = 0;  // of the interval: at least as requested, or the highest possible
};
// All values must be above 0.
[[nodiscard]] ratio_interval ratio_of(std::span<const double> a, std::span<const double> b,
                                      double confidence);

}  // namespace bitnet::host::judge

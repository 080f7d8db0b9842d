#pragma once
// Whether one set of measurements is larger than another, without a guess at their distribution:
// the Mann-Whitney U test, and the ratio of the two with the interval that belongs to it
// (Hodges and Lehmann).
//
// Exact   for at most most_exact values in all: every way to share them out is counted, ties
//         included. Above that the normal approximation, corrected for ties and continuity.

#include <cstddef>
#include <span>

namespace bitnet::host::judge {

inline constexpr std::size_t most_exact = 60;

struct rank_test {
  double u = 0;        // pairs in which b is larger, ties counting half
  double p = 1;        // two-sided
  double least_p = 1;  // the smallest p that so many values can have
  bool exact = true;
};
// Both have a value.
[[nodiscard]] rank_test mann_whitney(std::span<const double> a, std::span<const double> b);

struct ratio_interval {
  double ratio = 1;  // the median of b[j] / a[i]
  double low = 1, high = 1;
  double confidence = 0;  // of the interval: at least what was asked for, or all that there is
};
// Of values above 0.
[[nodiscard]] ratio_interval ratio_of(std::span<const double> a, std::span<const double> b,
                                      double confidence);

}  // namespace bitnet::host::judge

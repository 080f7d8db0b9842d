#pragma once
// Bounds of the error of numbers that the library computes in double and returns as float.

#include <cmath>
#include <cstdint>

namespace bitnet::test {

// The unit roundoff u of float. The factor covers terms of u^2, and the roundings in double, each
// of 2^-29 u, of up to 2^20 terms.
inline constexpr double float_rounding = 0x1p-24 * (1 + 0x1p-8);

// How far the squares of a vector of length 1 may be from 1. Each element is rounded once, and its
// square is off by twice as much.
inline constexpr double unit_length_tolerance = 2 * float_rounding;

// How far a log probability may be from `exact`, which a test computes in double from the same `n`
// logits. The float is rounded once. On both sides a sum of n terms is off by n * 2^-53 of itself,
// which is an absolute error of its logarithm. The 64 stands for the error of exp, the logarithm
// and the subtractions.
inline double logprob_tolerance(double exact, uint64_t n) {
  return float_rounding * std::fabs(exact) + 2 * (static_cast<double>(n) + 64) * 0x1p-53;
}

// How far the mean of log probabilities may be from `found`, which a test computes from floats. The
// library sums doubles. So the test's terms are rounded once, each by at most u of itself; they
// have the same sign, so the mean of their errors is at most u of the mean. The result is rounded
// once.
inline double mean_logprob_tolerance(double found) {
  return 2 * float_rounding * std::fabs(found);
}

// How far the sum of `n` probabilities may exceed 1, if each is exp() of a float p. p is off by
// u |p|, so the probability by u |p| exp(p), which is largest for p = -1: u / e.
inline double probabilities_tolerance(uint64_t n) {
  return static_cast<double>(n) * float_rounding / std::exp(1.0);
}

}  // namespace bitnet::test

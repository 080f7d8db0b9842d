#pragma once
// The natural logarithm of x > 0, and powers of numbers up to 1, the same bits on every platform;
// std::log and std::pow differ between libraries.
//
// Exact      additions, multiplications, divisions, frexp and ldexp of IEEE doubles only; needs
//            -ffp-contract=off.
// Tolerance  logarithm: absolute error below 4e-16 plus a relative one of 4e-16.
// Source     ln m = 2 artanh((m - 1) / (m + 1)), by its series.

namespace bitnet::sampling {

[[nodiscard]] double logarithm(double x);

// x to the power of e, for x in [0, 1] and e >= 0; 0 to the power of 0 is 1.
[[nodiscard]] double power(double x, double e);

}  // namespace bitnet::sampling

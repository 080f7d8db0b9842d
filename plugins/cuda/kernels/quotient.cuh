#pragma once
// Quotients of many numbers by one, rounded correctly, by its reciprocal and four fused
// multiply-adds each.
//
// Exact    the bits of n / by, for n of 0 and of sizes from 1 to 2^31, and `usual` divisors.
// Why      With u = 2^-24 the reciprocal, rounded, and the product with it are off by u of their
//          size each: q0 = (n / by)(1 + e), |e| < 2^-22. What is left, n - q0 * by,
//          is rounded once, and so is what it comes to: fma(r0, inverse, q0) adds to the exact
//          quotient an error of less than 2^-22 * 2^-22 of its size before it is rounded, so that
//          q1 is one of the two floats around it. Then n - q1 * by is a float, and the last line
//          rounds as the division does (Markstein, IBM J. Res. Dev. 34 (1990); Handbook of
//          Floating-Point Arithmetic, "correcting residuals": a faithful quotient and a correctly
//          rounded reciprocal). Nothing of it is subnormal or too large for divisors between
//          2^-60 and 2^60.
// Tests    tests/cuda/quotient_test.cpp, with all quotients that lie nearest to where rounding
//          turns.

#include "device.cuh"

namespace bitnet::kernels {

struct divisor {
  float by, inverse;

  __device__ bool usual() const { return by > 0x1p-60f && by < 0x1p60f; }
  __device__ float quotient(float n) const {
    const float q0 = n * inverse;
    const float q1 = fmaf(fmaf(-q0, by, n), inverse, q0);
    return fmaf(fmaf(-q1, by, n), inverse, q1);
  }
};
__device__ inline divisor divisor_of(float by) {
  return {by, 1.0f / by};
}

}  // namespace bitnet::kernels

#pragma once
// e to the power of x for x <= 0, the same bits on every platform; std::exp differs between
// libraries.
//
// Exact      additions, multiplications and ldexp of IEEE doubles only; needs -ffp-contract=off.
// Tolerance  relative error below 4e-16 down to x = -700, from where on the result is 0.

namespace bitnet::sampling {

[[nodiscard]] double exponential(double x);

}  // namespace bitnet::sampling

#pragma once
// Rows of an output matrix in fewer bits, for the first pass of the two-stage head.
//
// Exact    every instruction set gives the same codes and norms.
// Bound    |r| and |D q| are computed in f32, so a bound made of them must be a little larger. For
//          a row with a NaN or infinite weight, or whose steps f32 cannot hold, |r| is NaN or the
//          size of the row.

#include <cstdint>

#include "kernels/variants.hpp"

namespace bitnet::cpu {

// A row w = D q + r. D has the scales of elements: the row's, times multipliers if there are any.
struct row_code {
  float scale = 0, error = 0, size = 0;  // |r|, |D q|
};

// Rows of k elements; q gets the codes.
row_code i8_codes(const isa_form& isa, const float* row, uint64_t k, int8_t* q);
// k a multiple of 16. The scale makes r orthogonal to the row.
row_code i4_codes(const float* row, uint64_t k, int8_t* q);
// k a multiple of 64. multipliers (16) as in kernels/linear_i6.hpp. Apart from rounding, no element
// of r exceeds 127.5 scales.
row_code i6_codes(const float* row, uint64_t k, int8_t* q, uint8_t* multipliers);

}  // namespace bitnet::cpu

#pragma once
// Rows of an output matrix in fewer bits, for the first pass of the two-stage head.
//
// Exact    the same codes and norms by every instruction set.
// Bound    |r| and |D q| are as computed in f32: a bound made of them must be a little larger. Of a
//          row with a weight that is not a number, and of one whose steps f32 cannot hold, |r| is
//          no number or the size of the row.

#include <cstdint>

#include "kernels/variants.hpp"

namespace bitnet::cpu {

// A row w = D q + r, D the scales of its elements: the row's times multipliers, where it has any.
struct row_code {
  float scale = 0, error = 0, size = 0;  // |r|, |D q|
};

// Rows of k elements; q gets the codes.
row_code i8_codes(const isa_form& isa, const float* row, uint64_t k, int8_t* q);
// k a multiple of 16. The scale makes r orthogonal to the row.
row_code i4_codes(const float* row, uint64_t k, int8_t* q);
// k a multiple of 64. multipliers (16), as kernels/linear_i6.hpp has them. No element of r is
// larger than 127.5 scales, a rounding aside.
row_code i6_codes(const float* row, uint64_t k, int8_t* q, uint8_t* multipliers);

}  // namespace bitnet::cpu

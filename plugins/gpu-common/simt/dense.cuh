#pragma once
// The product of a row of a matrix, by a warp. Its order of sums is the same in all kernels.

#include "formats.cuh"

namespace bitnet::kernels {

// Multiplies `row`, of k elements, by the tokens [first, first + Tokens) of x (rows, k); places
// past the last token repeat it. Lane i gets the sum of token i * Tokens / warp.
template <class Row, uint32_t Tokens>
__device__ float row_products(const uint32_t* row, const uint32_t* x, uint32_t k, uint64_t first,
                              uint32_t rows) {
  const uint32_t pieces = k / 16, left = k % 16;
  float sums[Tokens][4] = {};
  const auto add = [&](uint32_t i, bool end, const float(&weights)[16]) {
    for (uint32_t j = 0; j < Tokens; ++j) {
      const uint64_t t = first + j < rows ? first + j : rows - 1;
      float values[16];
      if (end)
        ending<f32_row>(x + t * k, i, left, values);
      else
        f32_row::piece(x + t * k, i, values);
      add_products(weights, values, sums[j]);
    }
  };
  float weights[16];
  for (uint32_t i = lane(); i < pieces; i += warp) {
    Row::piece(row, i, weights);
    add(i, false, weights);
  }
  if (!Row::blocks && left != 0 && lane() == pieces % warp) {
    ending<Row>(row, pieces, left, weights);
    add(pieces, true, weights);
  }
  float each[Tokens];
  for (uint32_t j = 0; j < Tokens; ++j)
    each[j] = (sums[j][0] + sums[j][1]) + (sums[j][2] + sums[j][3]);
  return sum_of_lanes(each);
}

}  // namespace bitnet::kernels

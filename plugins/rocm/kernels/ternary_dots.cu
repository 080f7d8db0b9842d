// linear_ternary for several tokens, bit for bit, by products of four bytes: matrices with one
// scale. A wave takes rows of the matrix and reads each code once for all of its tokens.

#include "gpu-common/simt/ternary.cuh"
#include "ternary_dots.hpp"

using namespace bitnet::kernels;
namespace gpu = bitnet::gpu;

namespace {

constexpr uint32_t rows_each = rows_of_dots, tokens_each = tokens_of_dots;

// Products of sixteen bytes with a sign, added to c.
__device__ int dot16(const uint4& a, const uint4& b, int c) {
  c = dot4(static_cast<int>(a.x), static_cast<int>(b.x), c);
  c = dot4(static_cast<int>(a.y), static_cast<int>(b.y), c);
  c = dot4(static_cast<int>(a.z), static_cast<int>(b.z), c);
  return dot4(static_cast<int>(a.w), static_cast<int>(b.w), c);
}
__device__ uint4 codes_at(const uint4& from, uint32_t shift) {
  return make_uint4(from.x >> shift & codes_mask, from.y >> shift & codes_mask,
                    from.z >> shift & codes_mask, from.w >> shift & codes_mask);
}

// Lane i gets the product of row i * values / lanes / tokens_each and token i * values / lanes %
// tokens_each. `halves`: of blocks, in a row.
__device__ int dot_tile(const uint4* const (&row)[rows_each], const uint4* const (&q)[tokens_each],
                        uint32_t halves) {
  int sums[rows_each * tokens_each] = {}, sum_of_activations[tokens_each] = {};
  for (uint32_t i = lane(); i < halves; i += warp) {
    uint4 codes[rows_each];
    BITNET_UNROLL
    for (uint32_t r = 0; r < rows_each; ++r) codes[r] = row[r][i];
    BITNET_UNROLL_DOTS
    for (uint32_t quarter = 0; quarter < 4; ++quarter) {
      uint4 of_quarter[rows_each];
      BITNET_UNROLL
      for (uint32_t r = 0; r < rows_each; ++r) of_quarter[r] = codes_at(codes[r], 6 - 2 * quarter);
      BITNET_UNROLL
      for (uint32_t t = 0; t < tokens_each; ++t) {
        const uint4 values = q[t][i / 2 * 8 + quarter * 2 + i % 2];
        sum_of_activations[t] = sum16(values, sum_of_activations[t]);
        BITNET_UNROLL
        for (uint32_t r = 0; r < rows_each; ++r)
          sums[r * tokens_each + t] = dot16(of_quarter[r], values, sums[r * tokens_each + t]);
      }
    }
  }
  BITNET_UNROLL
  for (uint32_t i = 0; i < rows_each * tokens_each; ++i)
    sums[i] -= sum_of_activations[i % tokens_each];
  return sum_of_lanes(sums);
}

}  // namespace

BITNET_KERNEL(linear_ternary_dots) {
  const ternary_product product = ternary_product_of(l);
  constexpr uint32_t of_group = warps * rows_each, values = rows_each * tokens_each;
  each_group((uint64_t{product.p.n_rows} + of_group - 1) / of_group, [&](uint32_t unit) {
    const uint32_t r = unit * of_group + warp_of_group() * rows_each;
    if (r >= product.p.n_rows) return;  // all of a wave
    const uint4* row[rows_each];
    for (uint32_t i = 0; i < rows_each; ++i)
      row[i] = reinterpret_cast<const uint4*>(product.row(r + i));
    for (uint64_t first = uint64_t{blockIdx.y} * tokens_each; first < product.tokens;
         first += uint64_t{gridDim.y} * tokens_each) {
      const uint4* q[tokens_each];
      for (uint32_t t = 0; t < tokens_each; ++t)
        q[t] = reinterpret_cast<const uint4*>(product.activations_of(first + t));
      const int sum = dot_tile(row, q, product.p.row_words / 4);
      constexpr uint32_t lanes_each = warp / values;
      const uint32_t value = lane() / lanes_each;
      if (lane() % lanes_each == 0)
        product.put_sum(first + value % tokens_each, r + value / tokens_each, sum);
    }
  });
}

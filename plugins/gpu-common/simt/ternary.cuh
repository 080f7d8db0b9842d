#pragma once
// What products of ternary rows and int8 activations share.
//
// Codes are 0, 1 and 2 for -1, 0 and 1. A product with codes therefore exceeds the product with
// weights by the sum of the activations, which is the same for all rows.

#include "common.cuh"

namespace bitnet::kernels {

constexpr uint32_t codes_mask = 0x03030303u;
constexpr uint32_t ones = 0x01010101u, minus_ones = 0xffffffffu;  // four bytes each

// The product of sixteen codes without a shift, multiplied by the power of two of their place.
__device__ inline int dot16_in_place(const uint4& codes, uint32_t mask, const uint4& q, int sum) {
  sum = dot4_of_unsigned(codes.x & mask, q.x, sum);
  sum = dot4_of_unsigned(codes.y & mask, q.y, sum);
  sum = dot4_of_unsigned(codes.z & mask, q.z, sum);
  return dot4_of_unsigned(codes.w & mask, q.w, sum);
}
// The sum of sixteen activations.
__device__ inline int sum16(const uint4& q, int sum) {
  constexpr int one = ones;
  sum = dot4(one, static_cast<int>(q.x), sum);
  sum = dot4(one, static_cast<int>(q.y), sum);
  sum = dot4(one, static_cast<int>(q.z), sum);
  return dot4(one, static_cast<int>(q.w), sum);
}

// The logarithm of a power of two.
__device__ inline uint32_t log2_of(uint32_t x) {
  return 31 - leading_zeros(x);
}

// What linear_ternary reads and writes.
struct ternary_product {
  gpu::linear_ternary_params p;
  const uint32_t* q;
  const float* s;
  const uint32_t* matrix;
  const float* scales;
  const float* residual;
  float* y;
  uint32_t tokens;
  uint64_t stride;  // words of a token in q

  // Rows and tokens past the end repeat the last one; nothing is stored for them.
  __device__ const uint32_t* row(uint32_t r) const {
    return matrix + uint64_t{smaller(r, p.n_rows - 1)} * p.row_words;
  }
  __device__ uint64_t token(uint64_t t) const { return t < tokens ? t : tokens - 1; }
  __device__ const uint32_t* activations_of(uint64_t t) const { return q + token(t) * stride; }
  // Row r of token t.
  __device__ void put(uint64_t t, uint32_t r, float value) const {
    if (t >= tokens || r >= p.n_rows) return;
    const uint64_t at = t * p.m + p.first_row + r;
    if (p.add) value += residual[at];
    y[at] = value;
  }
  // The same for matrices with one scale.
  __device__ void put_sum(uint64_t t, uint32_t r, int sum) const {
    put(t, r, static_cast<float>(sum) / s[token(t)] * scales[0]);
  }
};
__device__ inline ternary_product ternary_product_of(const launch& l) {
  const auto p = params_of<gpu::linear_ternary_params>(l);
  return {p,
          memory_of<const uint32_t>(l, 1),
          memory_of<const float>(l, 2),
          memory_of<const uint32_t>(l, 3),
          memory_of<const float>(l, 4),
          memory_of<const float>(l, 5),
          memory_of<float>(l, 6),
          rows_of(l),
          gpu::i8_row_words(p.k)};
}

// Before a group waits for earlier kernels, it requests its first rows of the matrix, at most
// `rows`. The first group also requests the scale, which all groups read at their end.
//
// Sound    these are weights. They are uploaded before a program is made (weights.cpp), and no
//          command of a recording writes them. The loads behind the wait are the same as without
//          the request, and all of the device's memory is coherent in its L2 cache.
// Limit    four groups on each of 132 multiprocessors request at most 34 MB, of 50 MB of L2 (H200).
template <class Params>
__device__ void fetch_rows_ahead(const launch& l, const group_of_launch& group, uint32_t rows) {
  constexpr uint32_t most_bytes = 64 << 10;
  const auto p = params_of<Params>(l);
  const uint64_t first = uint64_t{group.number} * rows;
  if (threadIdx.x != 0 || blockIdx.y != 0 || first >= p.n_rows) return;
  const uint32_t left = smaller(rows, p.n_rows - static_cast<uint32_t>(first));
  fetch_ahead(memory_of<const uint32_t>(l, 3) + first * p.row_words,
              smaller(4 * left * p.row_words, most_bytes));
  if (group.number == 0) fetch_line_ahead(memory_of<const float>(l, 4));
}

// The factors of the elements. Each shorter group has a factor for its sum. If there are longer
// groups, each has another factor for the sum of its shorter groups.
struct factor_groups {
  uint32_t shorter, longer;   // elements; longer 0: there are none
  bool rows_first;            // the shorter are the matrix's
  uint32_t of_row, of_token;  // numbers of factors; of_row 0: all rows share the first

  __device__ const float* row(const ternary_product& product, uint32_t r) const {
    return product.scales +
           (uint64_t{product.p.first_row} + smaller(r, product.p.n_rows - 1)) * of_row;
  }
  __device__ const float* token(const ternary_product& product, uint64_t t) const {
    return product.s + product.token(t) * of_token;
  }
};
// `given`: elements per factor of the activations; 0: each token has one scale, which divides.
__device__ inline factor_groups factor_groups_of(const ternary_product& product, uint32_t given) {
  const uint32_t own = product.p.scale_group == 0 ? product.p.k : product.p.scale_group;
  const uint32_t of_row = product.p.scale_group == 0 ? 0 : product.p.k / own;
  if (given == 0) return {own, 0, true, of_row, 1};
  if (given <= own) return {given, own, false, of_row, product.p.k / given};
  return {own, given, true, of_row, product.p.k / given};
}

}  // namespace bitnet::kernels

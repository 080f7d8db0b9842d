#pragma once
// y = W x in f32, and the weighted sum of rows: LINEAR_DENSE and the two halves of attention.
//
// Shapes   W (rows, k) of any dense format; x (tokens, k); y (tokens, rows).
// Order    a dot product has 16 partial sums. Element i is decoded to f32, multiplied by x_i,
//          rounded, and added to partial i % 16, i ascending from 0. The partials are then added in
//          halves: p[j] += p[j + 8] for j < 8, then 4, 2 and 1.
// Exact    that order is the definition, and nothing is fused: every form returns the same bits.

#include <cstdint>

#include "kv_formats.hpp"

namespace bitnet::cpu {

struct dense_tile {
  uint32_t format;  // BITNET_FORMAT_*
  const uint8_t* w;
  uint64_t w_stride;  // bytes between rows
  const float* x;
  uint64_t x_stride;  // elements between tokens
  float* y;
  uint64_t y_stride;  // elements between tokens
  uint64_t k, rows, tokens;
  const uint8_t* next = nullptr;  // rows without gaps that are read after these, if known
  // (tokens, rows, 16): the partial sums continue from these and are left there, and y is not
  // written, so a long row can be cut at multiples of 16. nullptr: they begin at zero and end in y.
  float* partials = nullptr;
  // Rows of weights without gaps that are read later. While the first tokens are multiplied by the
  // rows here, the same number of later rows is prefetched. nullptr: none.
  const uint8_t* later = nullptr;
  uint64_t later_row_bytes = 0;
};

void linear_dense_scalar(const dense_tile&);  // every dense format
// f32, f16, bf16, q8_0, q4_0; with another format y stays as it is:
void linear_dense_sse41(const dense_tile&);   // needs SSE4.1
void linear_dense_avx2(const dense_tile&);    // needs AVX2 and F16C
void linear_dense_avx512(const dense_tile&);  // needs AVX-512 F, BW, VL and F16C
void linear_dense_neon(const dense_tile&);    // needs AArch64

// For each head: y_d += p_0 * v_0d, then p_1 * v_1d, ...: each product rounded, then added.
struct weighted_rows {
  kv_format format;  // q8_0 and q4_0 with a width of whole blocks; with none y stays as it is
  const uint8_t* v;
  uint64_t v_stride;  // bytes between rows
  const float* p;     // (heads, rows)
  uint64_t p_stride;  // elements between heads
  float* y;           // (heads, width)
  uint64_t y_stride;  // elements between heads
  uint64_t rows, width, heads;
  const uint8_t* next;  // rows without gaps that are read after these; nullptr: all are in caches
};

void weighted_sum_scalar(const weighted_rows&);
void weighted_sum_sse41(const weighted_rows&);
void weighted_sum_avx2(const weighted_rows&);
void weighted_sum_avx512(const weighted_rows&);
void weighted_sum_neon(const weighted_rows&);

}  // namespace bitnet::cpu

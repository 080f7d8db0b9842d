#pragma once
// sums = Q x for int8 or 4-bit weights and 15-bit activations: the first pass of the two-stage
// head.
//
// Shapes   Q (rows, k), int8: in [-127, 127], kept as code + 128; 4 bits: in [-7, 7], kept as
//          code + 8, element j of 128 in the low half of byte j for j < 64, else in the high half
//          of byte j - 64; rows without gaps; x (outputs, k) in [-16256, 16256], also given as
//          x = 128 high + low with high in [-127, 127] and low in [-64, 63]; sums (outputs, rows).
// Needs    k a multiple of 64, with 4 bits of 128, at most 8192, so that no int32 partial
//          overflows.
// Exact    integers only: every form returns the same.

#include <cstdint>

#include "ahead.hpp"

namespace bitnet::cpu {

struct i8_tile {
  const uint8_t* w;
  uint64_t w_stride;  // bytes of a row: k, with 4 bits k / 2
  const int16_t* x;
  const int8_t* high;
  const int8_t* low;
  uint64_t x_stride;      // elements between outputs, of all three
  const int64_t* x_sums;  // (outputs): of x
  int64_t* sums;
  uint64_t sums_stride;  // elements between outputs
  uint64_t k, rows, outputs;
  uint64_t ahead = usual_ahead;  // bytes: prefetch distance
};

inline constexpr uint64_t max_i8_width = 8192;

void linear_i8_scalar(const i8_tile&);
void linear_i8_sse41(const i8_tile&);         // needs SSE4.1
void linear_i8_avx2(const i8_tile&);          // needs AVX2
void linear_i8_avxvnni(const i8_tile&);       // needs AVX2 and AVX-VNNI
void linear_i8_avx512(const i8_tile&);        // needs AVX-512 F, BW and VL
void linear_i8_avx512vnni(const i8_tile&);    // needs AVX-512 F, BW, VL and VNNI
void linear_i8_neon(const i8_tile&);          // needs AArch64
void linear_i8_neon_dotprod(const i8_tile&);  // needs AArch64 with dot products

void linear_i4_scalar(const i8_tile&);  // need what their namesakes need
void linear_i4_sse41(const i8_tile&);
void linear_i4_avx2(const i8_tile&);
void linear_i4_avxvnni(const i8_tile&);
void linear_i4_avx512(const i8_tile&);
void linear_i4_avx512vnni(const i8_tile&);
void linear_i4_neon(const i8_tile&);
void linear_i4_neon_dotprod(const i8_tile&);

}  // namespace bitnet::cpu

#pragma once
// sums = W q for ternary W: the integer half of LINEAR_TERNARY. One header, one definition of
// right.
//
// Shapes   W (rows, k) in {-1, 0, +1}; q (tokens, k) int8; sums (tokens, rows) int32.
// Packing  BITNET_FORMAT_TERNARY2: byte p of a 32-byte group holds the elements p, p+32, p+64, p+96
//          of 128 in bits 7:6, 5:4, 3:2, 1:0, each as t + 1. Elements past k are not multiplied.
// Needs    k <= 2^22, so that no int32 sum overflows, whatever the bytes of W are.
// Exact    sum(t q) = sum(code q) - sum(q), integers only: every form returns the same bits.
// Source   BitNet b1.58, arXiv:2402.17764, section 2.

#include <cstdint>

#include "ahead.hpp"

namespace bitnet::cpu {

struct ternary_tile {
  const uint8_t* w;
  uint64_t w_stride;  // bytes between rows
  const int8_t* q;
  uint64_t q_stride;  // elements between tokens
  int32_t* sums;
  uint64_t sums_stride;  // elements between tokens
  uint64_t k, rows, tokens;
  // Prefetch distance in bytes, for steps of few tokens.
  uint64_t ahead = usual_ahead;
};

void linear_ternary_scalar(const ternary_tile&);
void linear_ternary_sse41(const ternary_tile&);         // needs SSE4.1
void linear_ternary_avx2(const ternary_tile&);          // needs AVX2
void linear_ternary_avxvnni(const ternary_tile&);       // needs AVX2 and AVX-VNNI
void linear_ternary_avx512(const ternary_tile&);        // needs AVX-512 F, BW and VL
void linear_ternary_avx512vnni(const ternary_tile&);    // needs AVX-512 F, BW, VL and VNNI
void linear_ternary_neon(const ternary_tile&);          // needs AArch64
void linear_ternary_neon_dotprod(const ternary_tile&);  // needs AArch64 with dot products
void linear_ternary_neon_i8mm(const ternary_tile&);     // needs dot products and matrix products

}  // namespace bitnet::cpu

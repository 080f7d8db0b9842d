#pragma once
// y = W x for ternary W with a scale for each group of a row: LINEAR_TERNARY of such weights, but
// for the division by the activations' scale. One header, one definition of right.
//
// Shapes   W (rows, groups * group) in {-1, 0, +1}; q (tokens, groups * group) int8;
//          scales (rows, groups); y (tokens, rows) f32.
// Packing  as in linear_ternary.hpp. Rows begin at whole bytes of it: at an element that is a
//          multiple of 128.
// Needs    group a multiple of 32, and of group * groups no more than 2^22; groups up to
//          most_groups, tokens up to most_grouped_tokens.
// Order    the sum of a group is an integer. It is made f32, multiplied by the group's scale,
//          rounded, and added to y; groups ascending. y begins with +0, or goes on from what is
//          there, so that rows of any length can be cut between groups.
// Exact    that order is the definition and nothing is fused: every form returns the same bits.
//
// A scale for each group of activations would be one more factor of the same product: sums are made
// for 32 elements at a time, so a group of either kind may be any multiple of 32, and the shorter
// of the two would say where the floats begin.

#include <cstdint>

namespace bitnet::cpu {

inline constexpr uint64_t most_groups = 256, most_grouped_tokens = 32;

struct grouped_tile {
  const uint8_t* w;
  uint64_t w_stride;  // bytes between rows
  const int8_t* q;
  uint64_t q_stride;  // elements between tokens
  const float* scales;
  uint64_t scales_stride;  // elements between rows
  float* y;
  uint64_t y_stride;  // elements between tokens
  uint64_t group, groups, rows, tokens;
  bool goes_on;           // y has the sums of earlier groups
  uint64_t ahead = 8192;  // bytes: in long rows, weights are asked for so early
};

void linear_grouped_scalar(const grouped_tile&);
void linear_grouped_sse41(const grouped_tile&);         // needs SSE4.1
void linear_grouped_avx2(const grouped_tile&);          // needs AVX2
void linear_grouped_avxvnni(const grouped_tile&);       // needs AVX2 and AVX-VNNI
void linear_grouped_avx512(const grouped_tile&);        // needs AVX-512 F, BW and VL
void linear_grouped_avx512vnni(const grouped_tile&);    // needs AVX-512 F, BW, VL and VNNI
void linear_grouped_neon(const grouped_tile&);          // needs AArch64
void linear_grouped_neon_dotprod(const grouped_tile&);  // needs its dot products

}  // namespace bitnet::cpu

#pragma once
// y = W x for ternary W with scales for groups of weights, of activations or of both:
// LINEAR_TERNARY with scale groups, without the division by the activations' scale, and
// LINEAR_TERNARY_GROUPED. One header, one definition of right.
//
// Shapes   W (rows, groups * group) in {-1, 0, +1}; q (tokens, groups * group) int8;
//          scales (rows, groups) or none; q_scales (tokens, groups of q) or none; y (tokens, rows)
//          f32.
// Packing  as in linear_ternary.hpp. A row begins at a whole byte of the packing: at an element
//          that is a multiple of 128.
// Tiles    the other packing: 16 rows lie together; the last tile is filled up with zeros. 128 of
//          their elements are a unit: first 64 bytes of scales, an f32 of each row, for each group
//          of weights in the unit or for the group that contains it; then 8 times 64 bytes of
//          codes, where the i-th 64 have bytes 4 i to 4 i + 3 of each row's packed group. Units of
//          a tile follow each other.
// Needs    group and q_group multiples of 32 that divide one another; group * groups at most 2^22;
//          at most most_grouped_tokens tokens. In rows at most most_groups of the shorter groups.
//          In tiles at most most_group_sums of them over all tokens, and groups of weights divide
//          128 or are multiples of it.
// Order    the sum of a shorter group is an integer. It is made f32, multiplied by the group's
//          scale and rounded. With one kind of group it is added to y; with two it is added to a
//          sum, from +0, which is multiplied by the scale of the longer group when that ends, and
//          added to y. If both are equally long, the scale of q comes first. Groups ascending. y
//          begins with +0, or continues from its value, so rows of any length can be cut between
//          longer groups.
// Exact    that order is the definition and nothing is fused: every form returns the same bits.

#include <cstdint>

#include "ahead.hpp"

namespace bitnet::cpu {

inline constexpr uint64_t most_groups = 256, most_grouped_tokens = 32,
                          most_group_sums = most_groups * most_grouped_tokens;
// For tokens that share tiles: most elements of all tokens, and a call's scratch in bytes.
inline constexpr uint64_t most_shared_elements = uint64_t{1} << 18,
                          shared_room_bytes = most_shared_elements / 4 * 5;
inline constexpr uint64_t rows_of_tile = 16, tile_line = 64, tile_lines = 8;  // 64 bytes of codes

struct grouped_tile {
  const uint8_t* w;
  uint64_t w_stride;  // bytes between rows, or between tiles
  const int8_t* q;
  uint64_t q_stride;  // elements between tokens
  // nullptr: scales are in tiles; or only q has groups, which `group` and `groups` then count
  const float* scales;
  uint64_t scales_stride;  // elements between rows
  float* y;
  uint64_t y_stride;  // elements between tokens
  uint64_t group, groups, rows, tokens;
  bool goes_on;                     // y has the sums of earlier groups
  uint64_t ahead = usual_ahead;     // bytes: prefetch distance, in long rows
  const float* q_scales = nullptr;  // nullptr: only weights have groups
  uint64_t q_scales_stride = 0;     // elements between tokens
  uint64_t q_group = 0;             // elements
  uint64_t unit = 0;                // bytes of a unit where w is in tiles; 0: it is in rows
  uint64_t skipped = 0;             // rows of the first tile before the requested ones
  void* room = nullptr;             // shared_room_bytes, at a line: for several tokens by tiles
};

void linear_grouped_scalar(const grouped_tile&);
void linear_grouped_sse41(const grouped_tile&);         // needs SSE4.1
void linear_grouped_avx2(const grouped_tile&);          // needs AVX2
void linear_grouped_avxvnni(const grouped_tile&);       // needs AVX2 and AVX-VNNI
void linear_grouped_avx512(const grouped_tile&);        // needs AVX-512 F, BW and VL
void linear_grouped_avx512vnni(const grouped_tile&);    // needs AVX-512 F, BW, VL and VNNI
void linear_grouped_neon(const grouped_tile&);          // needs AArch64
void linear_grouped_neon_dotprod(const grouped_tile&);  // needs AArch64 with dot products

}  // namespace bitnet::cpu

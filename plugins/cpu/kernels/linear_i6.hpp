#pragma once
// sums = Q x for 6-bit weights with scales of their own in each row and 15-bit activations: the
// first pass of the two-stage head, where memory is the bottleneck.
//
// Shapes   Q (rows, k) in [-31, 31], kept as code + 32; multipliers (rows, 16): element i has
//          number i / 4 % 16, so all elements that a lane of 64 bytes adds up share one; x = 128
//          high + low, both (outputs, k), high in [-127, 127] and low in [-64, 63]; sums (outputs,
//          rows) = sum(multiplier code x).
// Packing  192 bytes for 256 elements of a row: byte 64 p + j, p from 0 to 2, has element 64 p + j
//          in its low 6 bits and bits 2 p and 2 p + 1 of element 192 + j above them. Two rows
//          alternate, 192 bytes of one, then of the other; the last of an odd number is alone.
// Needs    k a multiple of 256, at most 8192, so that no int32 partial overflows; the first row is
//          the first of its pair.
// Exact    integers only: every form returns the same.

#include <cstdint>

#include "ahead.hpp"

namespace bitnet::cpu {

inline constexpr uint64_t i6_block = 256, i6_block_bytes = 192, i6_groups = 16;

struct i6_tile {
  const uint8_t* w;
  const uint8_t* multipliers;
  const int8_t* high;
  const int8_t* low;
  uint64_t x_stride;      // elements between outputs, of both
  const int32_t* starts;  // (outputs, 16): -32 times the sum of the group's x
  int64_t* sums;
  uint64_t sums_stride;  // elements between outputs
  uint64_t k, rows, outputs;
  uint64_t ahead = usual_ahead;  // bytes: prefetch distance
};

void linear_i6_scalar(const i6_tile&);
void linear_i6_avx512(const i6_tile&);      // needs AVX-512 F, BW and VL
void linear_i6_avx512vnni(const i6_tile&);  // needs AVX-512 F, BW, VL and VNNI

}  // namespace bitnet::cpu

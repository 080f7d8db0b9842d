#pragma once
// sums = W q for ternary W with five weights in a byte: linear_ternary.hpp with a fifth less to
// read. Such rows are copies, made while the original rows are read (row_copies.hpp).
//
// Packing  a line of 64 bytes has 320 weights: byte j of line i is the sum of 3^p (t + 1) over the
//          five planes p, t being element 320 i + 64 p + j; behind the row t + 1 is 0.
// Needs    k a multiple of 64, at most 2^22.
// Exact    integers only: the sums are those of linear_ternary.

#include <cstdint>

#include "linear_ternary.hpp"

namespace bitnet::cpu {

inline constexpr uint64_t fives_line = 320;  // elements
constexpr uint64_t fives_row_bytes(uint64_t k) {
  return (k + fives_line - 1) / fives_line * 64;
}

// Rows of BITNET_FORMAT_TERNARY2 and the place of their copy.
struct fives_rows {
  const uint8_t* from;
  uint64_t from_stride;  // bytes between rows
  uint8_t* to;
  uint64_t k, rows;
};

void linear_fives_scalar(const ternary_tile&);
void linear_fives_avx512vbmi(const ternary_tile&);  // needs AVX-512 F, BW, VL, VNNI and VBMI

// False if a code is no weight; the copy is then invalid.
bool code_fives_scalar(const fives_rows&);
bool code_fives_avx512vbmi(const fives_rows&);  // needs what its namesake needs

}  // namespace bitnet::cpu

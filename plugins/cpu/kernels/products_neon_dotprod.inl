// Products of four bytes, for lanes.inl.
//
// Gives    part, dot and widen, and vec and lanes by the file that it includes.
// Expects  <arm_neon.h>, <cstring>; no name of the form.

#include "registers_neon.inl"

using part = int32x4_t;

inline part dot(part sums, vec codes, vec q) {
  return vdotq_s32(sums, codes, q);
}

inline auto widen(part sums) {
  return sums;
}

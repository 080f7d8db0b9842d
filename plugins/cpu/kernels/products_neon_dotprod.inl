// Products of four bytes, for lanes.inl.
//
// Expects  <arm_neon.h>, <cstring>; no name of the form.
// Gives    `part`, `dot` and `widen`, and what registers_neon.inl gives.
// Used by  linear_grouped_neon_dotprod.cpp, linear_panel_neon_dotprod.cpp.

#include "registers_neon.inl"

using part = int32x4_t;

inline part dot(part sums, vec codes, vec q) {
  return vdotq_s32(sums, codes, q);
}

inline auto widen(part sums) {
  return sums;
}

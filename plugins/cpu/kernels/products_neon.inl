// Products of bytes for lanes.inl, on processors without dot products.
//
// Expects  <arm_neon.h>, <cstring>; no name of the form.
// Gives    `part`, `dot` and `widen`, and what registers_neon.inl gives.
// Used by  linear_grouped_neon.cpp, linear_panel_neon.cpp.

#include "registers_neon.inl"

// int16, of rows 0 and 1, and of rows 2 and 3. They, and the sums in widen, have room for 42
// products of 3 * 128.
struct part {
  int16x8_t low, high;
};

inline part dot(part sums, vec codes, vec q) {
  return {vmlal_s8(sums.low, vget_low_s8(codes), vget_low_s8(q)),
          vmlal_high_s8(sums.high, codes, q)};
}

inline auto widen(part sums) {
  return vpaddlq_s16(vpaddq_s16(sums.low, sums.high));
}

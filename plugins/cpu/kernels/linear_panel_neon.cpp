#include <arm_neon.h>

#include <cstring>

#include "linear_grouped.hpp"
#include "linear_panel.hpp"

namespace bitnet::cpu {
namespace {

#include "registers_neon.inl"

// int16, of rows 0 and 1, and of rows 2 and 3: 32 times one product of 3 * 128 at most, and twice
// that where widen adds them.
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

constexpr uint64_t registers = 4, at_once = 2, steps_of_part = 32;

#include "linear_panel_vector.inl"

}  // namespace

void linear_panel_neon(const panel_tile& a) {
  all(a);
}

}  // namespace bitnet::cpu

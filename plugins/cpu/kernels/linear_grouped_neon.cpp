#include <arm_neon.h>

#include <cstring>

#include "linear_grouped.hpp"

namespace bitnet::cpu {
namespace {

#include "registers_neon.inl"

constexpr bool in_place = false;  // a product of codes times 64 has no room in int16
// int16, of rows 0 and 1, and of rows 2 and 3: 8 times one product of 3 * 128 at most.
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

#include "linear_grouped_vector.inl"

}  // namespace

void linear_grouped_neon(const grouped_tile& a) {
  all<4, 4>(a);
}

}  // namespace bitnet::cpu

// linear_ternary.hpp with NEON, without the product instructions of later processors.
#include <arm_neon.h>

#include <cstring>

#include "linear_ternary.hpp"

namespace bitnet::cpu {
namespace {

using vec = int8x16_t;
using part = int16x8_t;
using wide = int32x4_t;
constexpr uint64_t width = 16;

// A lane: 2 halves, 4 planes, two products per unit: 5 * 2 * 4 * 2 * 3 * 128 = 30720 < 32768.
constexpr uint64_t run = 5;

inline vec load(const void* p) {
  return vld1q_s8(static_cast<const int8_t*>(p));
}

inline vec activations(const int8_t* q) {
  return load(q);
}

inline part dot(part sums, vec codes, vec q) {
  return vmlal_high_s8(vmlal_s8(sums, vget_low_s8(codes), vget_low_s8(q)), codes, q);
}

inline wide widen(part sums) {
  return vpaddlq_s16(sums);
}

inline int32_t total(wide sums) {
  return vaddvq_s32(sums);
}

#include "linear_ternary_vector.inl"

}  // namespace

void linear_ternary_neon(const ternary_tile& a) {
  multiply_tile<4, 4>(a);
}

}  // namespace bitnet::cpu

// linear_i8.hpp with NEON, without the product instructions of later processors.
#include <arm_neon.h>

#include "linear_i8.hpp"

namespace bitnet::cpu {
namespace {

using wide = int32x4_t;
using words = int16x8_t;
constexpr uint64_t lanes = 4;
constexpr uint64_t rows_at_once = 2, outputs_at_once = 4;

inline words codes(const uint8_t* w) {
  return vsubq_s16(vreinterpretq_s16_u16(vmovl_u8(vld1_u8(w))), vdupq_n_s16(128));
}

inline wide madd(words q, const int16_t* x) {
  const int16x8_t v = vld1q_s16(x);
  return vmlal_high_s16(vmull_s16(vget_low_s16(q), vget_low_s16(v)), q, v);
}

#include "linear_i8_words.inl"

}  // namespace

void linear_i8_neon(const i8_tile& a) {
  multiply_tile<false>(a);
}

void linear_i4_neon(const i8_tile& a) {
  multiply_tile<true>(a);
}

}  // namespace bitnet::cpu

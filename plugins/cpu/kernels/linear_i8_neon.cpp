#include <arm_neon.h>

#include "linear_i8.hpp"

namespace bitnet::cpu {
namespace {

using wide = int32x4_t;
constexpr uint64_t lanes = 4;

inline wide madd(const uint8_t* w, const int16_t* x) {
  const int16x8_t codes = vreinterpretq_s16_u16(vmovl_u8(vld1_u8(w)));
  const int16x8_t q = vsubq_s16(codes, vdupq_n_s16(128)), v = vld1q_s16(x);
  return vmlal_high_s16(vmull_s16(vget_low_s16(q), vget_low_s16(v)), q, v);
}

#include "linear_i8_words.inl"

}  // namespace

void linear_i8_neon(const i8_tile& a) {
  all(a);
}

void linear_i4_neon(const i8_tile& a) {
  all_i4(a);
}

}  // namespace bitnet::cpu

// Built with +dotprod: kernels only, nothing that runs before dispatch, no shared inline functions.
#include <arm_neon.h>

#include "linear_i8.hpp"

namespace bitnet::cpu {
namespace {

using vec = int32x4_t;
constexpr int64_t offset = 0;
constexpr uint64_t width = 16;
constexpr uint64_t rows_at_once = 2, outputs_at_once = 4;

inline vec load(const int8_t* p) {
  return vreinterpretq_s32_s8(vld1q_s8(p));
}

inline vec codes(const uint8_t* w) {
  return vreinterpretq_s32_u8(veorq_u8(vld1q_u8(w), vdupq_n_u8(128)));
}

inline vec dot(vec sums, vec c, vec x) {
  return vdotq_s32(sums, vreinterpretq_s8_s32(c), vreinterpretq_s8_s32(x));
}

inline int32_t total(vec sums) {
  return vaddvq_s32(sums);
}

#include "linear_i8_bytes.inl"

}  // namespace

void linear_i8_neon_dotprod(const i8_tile& a) {
  multiply_tile<false>(a);
}

void linear_i4_neon_dotprod(const i8_tile& a) {
  multiply_tile<true>(a);
}

}  // namespace bitnet::cpu

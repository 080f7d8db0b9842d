// Built with +dotprod: kernels only, nothing that runs before dispatch, no shared inline functions.
#include <arm_neon.h>

#include <cstring>

#include "linear_ternary.hpp"

namespace bitnet::cpu {
namespace {

using vec = int8x16_t;
using part = int32x4_t;
using wide = int32x4_t;
constexpr uint64_t width = 16;
constexpr uint64_t run = UINT64_MAX;

inline vec load(const void* p) {
  return vld1q_s8(static_cast<const int8_t*>(p));
}

inline vec activations(const int8_t* q) {
  return load(q);
}

inline part dot(part sums, vec codes, vec q) {
  return vdotq_s32(sums, codes, q);
}

inline wide widen(part sums) {
  return sums;
}

inline int32_t total(wide sums) {
  return vaddvq_s32(sums);
}

#include "linear_ternary_vector.inl"

}  // namespace

void linear_ternary_neon_dotprod(const ternary_tile& a) {
  multiply_tile<4, 4>(a);
}

}  // namespace bitnet::cpu

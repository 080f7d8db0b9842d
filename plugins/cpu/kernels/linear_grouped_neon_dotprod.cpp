// Built with +dotprod: kernels only, nothing that runs before dispatch, no shared inline functions.
#include <arm_neon.h>

#include <cstring>

#include "linear_grouped.hpp"

namespace bitnet::cpu {
namespace {

#include "registers_neon.inl"

constexpr bool in_place = false;  // its bytes of codes are signed
using part = int32x4_t;

inline part dot(part sums, vec codes, vec q) {
  return vdotq_s32(sums, codes, q);
}

inline auto widen(part sums) {
  return sums;
}

#include "linear_grouped_vector.inl"

}  // namespace

void linear_grouped_neon_dotprod(const grouped_tile& a) {
  all<4, 8>(a);
}

}  // namespace bitnet::cpu

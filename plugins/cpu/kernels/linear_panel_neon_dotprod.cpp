// Built with +dotprod: kernels only, nothing that runs before dispatch, no shared inline functions.
#include <arm_neon.h>

#include <cstring>

#include "linear_grouped.hpp"
#include "linear_panel.hpp"

namespace bitnet::cpu {
namespace {

#include "registers_neon.inl"

using part = int32x4_t;

inline part dot(part sums, vec codes, vec q) {
  return vdotq_s32(sums, codes, q);
}

inline auto widen(part sums) {
  return sums;
}

constexpr uint64_t registers = 4, at_once = 4, steps_of_part = 0;

#include "linear_panel_vector.inl"

}  // namespace

void linear_panel_neon_dotprod(const panel_tile& a) {
  all(a);
}

}  // namespace bitnet::cpu

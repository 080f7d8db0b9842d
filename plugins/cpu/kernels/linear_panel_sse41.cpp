// Built with -msse4.1: kernels only, nothing that runs before dispatch, no shared inline functions.
#include <smmintrin.h>

#include <cstring>

#include "linear_grouped.hpp"
#include "linear_panel.hpp"

namespace bitnet::cpu {
namespace {

#include "registers_sse41.inl"

// int16: 32 times two products of 3 * 128 at most.
using part = __m128i;

// Inline assembly, because g++ 12 copies the sums with _mm_add_epi16.
inline part dot(part sums, vec codes, vec q) {
  asm("paddw %1, %0" : "+x"(sums) : "x"(_mm_maddubs_epi16(codes, q)));
  return sums;
}

inline auto widen(part sums) {
  using wide = int32_t __attribute__((vector_size(16)));
  return reinterpret_cast<wide>(_mm_madd_epi16(sums, _mm_set1_epi16(1)));
}

constexpr uint64_t registers = 2, at_once = 4, steps_of_part = 32;

#include "linear_panel_vector.inl"

}  // namespace

void linear_panel_sse41(const panel_tile& a) {
  multiply_tile(a);
}

}  // namespace bitnet::cpu

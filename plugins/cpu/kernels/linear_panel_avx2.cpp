// Built with -mavx2: kernels only, nothing that runs before dispatch, no shared inline functions.
#include <immintrin.h>

#include <cstring>

#include "linear_grouped.hpp"
#include "linear_panel.hpp"

namespace bitnet::cpu {
namespace {

#include "registers_avx2.inl"

// int16: 32 times two products of 3 * 128 at most.
using part = __m256i;

// Inline assembly, because g++ 12 copies the sums with _mm256_add_epi16.
inline part dot(part sums, vec codes, vec q) {
  asm("vpaddw %1, %0, %0" : "+x"(sums) : "x"(_mm256_maddubs_epi16(codes, q)));
  return sums;
}

inline auto widen(part sums) {
  using wide = int32_t __attribute__((vector_size(32)));
  return reinterpret_cast<wide>(_mm256_madd_epi16(sums, _mm256_set1_epi16(1)));
}

constexpr uint64_t registers = 2, at_once = 4, steps_of_part = 32;

#include "linear_panel_vector.inl"

#include "linear_panel_tables.inl"

}  // namespace

void linear_panel_avx2(const panel_tile& a) {
  multiply_tile(a);
}

void linear_tables_avx2(const panel_tile& a) {
  look_up_or_multiply(a);
}

}  // namespace bitnet::cpu

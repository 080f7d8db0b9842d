// Built with -mavx2 -mavxvnni: kernels only, nothing that runs before dispatch, no shared inline
// functions.
#include <immintrin.h>

#include <cstring>

#include "linear_grouped.hpp"
#include "linear_panel.hpp"

namespace bitnet::cpu {
namespace {

#include "registers_avx2.inl"

using part = __m256i;  // int32

// Inline assembly, because g++ 12 copies the sums with _mm256_dpbusd_avx_epi32.
inline part dot(part sums, vec codes, vec q) {
  asm("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sums) : "x"(codes), "x"(q));
  return sums;
}

inline auto widen(part sums) {
  using wide = int32_t __attribute__((vector_size(32)));
  return reinterpret_cast<wide>(sums);
}

constexpr uint64_t registers = 2, at_once = 4, steps_of_part = 0;

#include "linear_panel_vector.inl"

#include "linear_panel_tables.inl"

}  // namespace

void linear_panel_avxvnni(const panel_tile& a) {
  multiply_tile(a);
}

void linear_tables_avxvnni(const panel_tile& a) {
  look_up_or_multiply(a);
}

}  // namespace bitnet::cpu

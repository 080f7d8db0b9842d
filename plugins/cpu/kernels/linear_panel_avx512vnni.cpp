// Built with AVX-512 flags: kernels only, nothing that runs before dispatch, no shared inline
// functions.
#include <immintrin.h>

#include <cstring>

#include "linear_grouped.hpp"
#include "linear_panel.hpp"

namespace bitnet::cpu {
namespace {

#include "registers_avx512.inl"

using part = __m512i;  // int32

// Inline assembly, because g++ 12 copies the sums with _mm512_dpbusd_epi32.
inline part dot(part sums, vec codes, vec q) {
  asm("vpdpbusd %2, %1, %0" : "+v"(sums) : "v"(codes), "v"(q));
  return sums;
}

inline auto widen(part sums) {
  using wide = int32_t __attribute__((vector_size(64)));
  return reinterpret_cast<wide>(sums);
}

constexpr uint64_t registers = 2, at_once = 8, steps_of_part = 0;

#include "linear_panel_vector.inl"

#include "linear_panel_tables.inl"

}  // namespace

void linear_panel_avx512vnni(const panel_tile& a) {
  multiply_tile(a);
}

void linear_tables_avx512vnni(const panel_tile& a) {
  look_up_or_multiply(a);
}

}  // namespace bitnet::cpu

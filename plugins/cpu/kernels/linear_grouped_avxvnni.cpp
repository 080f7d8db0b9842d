// Built with -mavx2 -mavxvnni: kernels only, nothing that runs before dispatch, no shared inline
// functions.
#include <immintrin.h>

#include <cstring>

#include "linear_grouped.hpp"

namespace bitnet::cpu {
namespace {

#include "registers_avx2.inl"

constexpr bool in_place = true, in_words = false;
using part = __m256i;  // int32

inline part dot(part sums, vec codes, vec q) {
  return _mm256_dpbusd_avx_epi32(sums, codes, q);
}

// As dot. Inline assembly, because g++ 12 copies the sums with _mm256_dpbusd_avx_epi32.
[[gnu::always_inline]] inline void add(part& sums, vec codes, vec q) {
  asm("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sums) : "x"(codes), "x"(q));
}

inline auto widen(part sums) {
  using wide = int32_t __attribute__((vector_size(32)));
  return reinterpret_cast<wide>(sums);
}

inline part begin_with(const int32_t* start) {
  return broadcast(reinterpret_cast<const int8_t*>(start));
}

#include "linear_grouped_vector.inl"

}  // namespace

void linear_grouped_avxvnni(const grouped_tile& a) {
  multiply_tile<2, 4, 8>(a);
}

}  // namespace bitnet::cpu

// Built with AVX-512 flags: kernels only, nothing that runs before dispatch, no shared inline
// functions.
#include <immintrin.h>

#include <cstring>

#include "linear_grouped.hpp"

namespace bitnet::cpu {
namespace {

#include "registers_avx512.inl"

constexpr bool in_place = true, in_words = false;
using part = __m512i;  // int32

inline part dot(part sums, vec codes, vec q) {
  return _mm512_dpbusd_epi32(sums, codes, q);
}

// As dot. Inline assembly, because g++ 12 copies the sums with _mm512_dpbusd_epi32.
[[gnu::always_inline]] inline void add(part& sums, vec codes, vec q) {
  asm("vpdpbusd %2, %1, %0" : "+v"(sums) : "v"(codes), "v"(q));
}

inline auto widen(part sums) {
  using wide = int32_t __attribute__((vector_size(64)));
  return reinterpret_cast<wide>(sums);
}

inline part begin_with(const int32_t* start) {
  return broadcast(reinterpret_cast<const int8_t*>(start));
}

#include "linear_grouped_vector.inl"

}  // namespace

void linear_grouped_avx512vnni(const grouped_tile& a) {
  multiply_tile<4, 8, 16>(a);
}

}  // namespace bitnet::cpu

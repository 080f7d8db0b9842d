// Built with AVX-512 flags: kernels only, nothing that runs before dispatch, no shared inline
// functions.
#include <immintrin.h>

#include "linear_i6.hpp"

namespace bitnet::cpu {
namespace {

#include "products_avx512vnni.inl"

template <bool Alone>
struct partial {
  static constexpr uint64_t chains = Alone ? 2 : 1;
  __m512i high[chains], low[chains];
};

template <bool Alone, uint64_t Rows>
[[gnu::always_inline]] inline void add(partial<Alone> (&to)[Rows], const __m512i (&codes)[Rows][4],
                                       const int8_t* high, const int8_t* low) {
#pragma GCC unroll 4
  for (uint64_t c = 0; c < 4; ++c) {
    const __m512i h = _mm512_loadu_si512(high + 64 * c), l = _mm512_loadu_si512(low + 64 * c);
#pragma GCC unroll 2
    for (uint64_t i = 0; i < Rows; ++i) {
      add_products(to[i].high[c % partial<Alone>::chains], codes[i][c], h);
      add_products(to[i].low[c % partial<Alone>::chains], codes[i][c], l);
    }
  }
}

template <bool Alone>
[[gnu::always_inline]] inline __m512i lanes(const partial<Alone>& of) {
  __m512i high = of.high[0], low = of.low[0];
  if constexpr (Alone) {
    high = _mm512_add_epi32(high, of.high[1]);
    low = _mm512_add_epi32(low, of.low[1]);
  }
  return _mm512_add_epi32(_mm512_slli_epi32(high, 7), low);
}

#include "linear_i6_vector.inl"

}  // namespace

void linear_i6_avx512vnni(const i6_tile& a) {
  multiply_tile(a);
}

}  // namespace bitnet::cpu

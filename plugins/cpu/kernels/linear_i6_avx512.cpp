// Built with AVX-512 F, BW and VL: kernels only, nothing that runs before dispatch, no shared
// inline functions.
#include <immintrin.h>

#include "linear_i6.hpp"

namespace bitnet::cpu {
namespace {

template <bool Alone>
struct partial {
  __m512i sums;
};

// Pairs of products, int16: at most 2 * 63 * 127 with the high part, so two fit, and 2 * 63 * 64
// with the low part, so four fit.
[[gnu::always_inline]] inline __m512i pairs(__m512i codes, const int8_t* x) {
  return _mm512_maddubs_epi16(codes, _mm512_loadu_si512(x));
}

template <bool Alone, uint64_t Rows>
[[gnu::always_inline]] inline void add(partial<Alone> (&to)[Rows], const __m512i (&codes)[Rows][4],
                                       const int8_t* high, const int8_t* low) {
  const __m512i weight = _mm512_set1_epi16(128), one = _mm512_set1_epi16(1);
#pragma GCC unroll 2
  for (uint64_t i = 0; i < Rows; ++i) {
    const auto half = [&](const int8_t* x, uint64_t c) __attribute__((always_inline)) {
      return _mm512_add_epi16(pairs(codes[i][c], x + 64 * c),
                              pairs(codes[i][c + 1], x + 64 * c + 64));
    };
    const __m512i lows = _mm512_add_epi16(half(low, 0), half(low, 2));
    const __m512i highs = _mm512_add_epi32(_mm512_madd_epi16(half(high, 0), weight),
                                           _mm512_madd_epi16(half(high, 2), weight));
    to[i].sums =
        _mm512_add_epi32(_mm512_add_epi32(to[i].sums, _mm512_madd_epi16(lows, one)), highs);
  }
}

template <bool Alone>
[[gnu::always_inline]] inline __m512i lanes(const partial<Alone>& of) {
  return of.sums;
}

#include "linear_i6_vector.inl"

}  // namespace

void linear_i6_avx512(const i6_tile& a) {
  multiply_tile(a);
}

}  // namespace bitnet::cpu

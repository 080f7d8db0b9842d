// Products and totals with AVX-512 VNNI, in the namespace of the form that includes it.
//
// Expects  <immintrin.h>; no name of the form.
// Gives    `add_products`, `totals`.
// Used by  linear_fives_avx512vbmi.cpp, linear_i6_avx512vnni.cpp,
//          linear_ternary_avx512vnni.cpp.

// Inline assembly, because g++ 12 copies the sums with _mm512_dpbusd_epi32.
[[gnu::always_inline]] inline void add_products(__m512i& sums, __m512i codes, __m512i q) {
  asm("vpdpbusd %2, %1, %0" : "+v"(sums) : "v"(codes), "v"(q));
}
[[gnu::always_inline]] inline void add_products(__m512i& sums, __m512i codes, const int8_t (&q)[64]) {
  asm("vpdpbusd %2, %1, %0" : "+v"(sums) : "v"(codes), "m"(q));
}

// Element i is the sum of all lanes of vector i.
inline __m128i totals(__m512i a, __m512i b, __m512i c, __m512i d) {
  const auto pairs = [](__m512i x, __m512i y) {
    return _mm512_add_epi32(_mm512_unpacklo_epi32(x, y), _mm512_unpackhi_epi32(x, y));
  };
  const __m512i ab = pairs(a, b), cd = pairs(c, d);
  const __m512i all =
      _mm512_add_epi32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd));
  const __m256i half =
      _mm256_add_epi32(_mm512_castsi512_si256(all), _mm512_extracti64x4_epi64(all, 1));
  return _mm_add_epi32(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
}

// f16 to f32 and back, rounded half to even, int8 to f32, and int32 that fit to int8, by the
// processor (F16C and AVX2, or AVX-512 F).
//
// Expects  BITNET_LANES, 8 or 16; the vector types `floats`, `integers`, `halves` and `bytes` of as
//          many elements; <immintrin.h>, <cstring>.
// Gives    `from_bytes`, `to_bytes`, `from_halves`, `to_halves`.
// Used by  attn_scores_avx*.cpp, rows_avx*.cpp.

// g++ 12 takes __builtin_convertvector apart into single elements.
inline floats from_bytes(bytes b) {
#if BITNET_LANES == 16
  return reinterpret_cast<floats>(
      _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(reinterpret_cast<__m128i>(b))));
#else
  int64_t bits = 0;
  std::memcpy(&bits, &b, sizeof b);
  return reinterpret_cast<floats>(
      _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_cvtsi64_si128(bits))));
#endif
}

inline bytes to_bytes(integers v) {
#if BITNET_LANES == 16
  return reinterpret_cast<bytes>(_mm512_cvtepi32_epi8(reinterpret_cast<__m512i>(v)));
#else
  const auto all = reinterpret_cast<__m256i>(v);
  const __m128i shorts =
      _mm_packs_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
  const int64_t bits = _mm_cvtsi128_si64(_mm_packs_epi16(shorts, shorts));
  bytes out;
  std::memcpy(&out, &bits, sizeof out);
  return out;
#endif
}

inline floats from_halves(halves h) {
#if BITNET_LANES == 16
  return reinterpret_cast<floats>(_mm512_cvtph_ps(reinterpret_cast<__m256i>(h)));
#else
  return reinterpret_cast<floats>(_mm256_cvtph_ps(reinterpret_cast<__m128i>(h)));
#endif
}

inline halves to_halves(floats x) {
#if BITNET_LANES == 16
  return reinterpret_cast<halves>(
      _mm512_cvtps_ph(reinterpret_cast<__m512>(x), _MM_FROUND_TO_NEAREST_INT));
#else
  return reinterpret_cast<halves>(
      _mm256_cvtps_ph(reinterpret_cast<__m256>(x), _MM_FROUND_TO_NEAREST_INT));
#endif
}

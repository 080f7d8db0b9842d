// f16 to f32 and back, rounded half to even, by the processor (F16C or AVX-512 F). `floats` and
// `halves` hold `lanes` elements.

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

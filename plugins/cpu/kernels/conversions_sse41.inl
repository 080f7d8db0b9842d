// f16 to f32 and back, rounded half to even, where the processor has no instruction for it: the
// steps of f16_to_f32 and f32_to_f16 in bitnet/sdk/formats.hpp, all cases computed and one taken.
// int8 to f32, and int32 that fit to int8. Comparisons are signed, which SSE has; no operand has
// its top bit set.
//
// Expects  the vector types `floats`, `words`, `integers`, `halves` and `bytes` of `lanes`
//          elements; <immintrin.h>, <cstring>.
// Gives    `from_bytes`, `to_bytes`, `from_halves`, `to_halves`.
// Used by  attn_scores_sse41.cpp, linear_dense_sse41.cpp, rows_sse41.cpp.

inline floats from_bytes(bytes b) {
  int32_t bits = 0;
  std::memcpy(&bits, &b, sizeof b);
  return reinterpret_cast<floats>(_mm_cvtepi32_ps(_mm_cvtepi8_epi32(_mm_cvtsi32_si128(bits))));
}

inline bytes to_bytes(integers v) {
  const __m128i shorts = _mm_packs_epi32(reinterpret_cast<__m128i>(v), reinterpret_cast<__m128i>(v));
  const int32_t bits = _mm_cvtsi128_si32(_mm_packs_epi16(shorts, shorts));
  bytes out;
  std::memcpy(&out, &bits, sizeof out);
  return out;
}

inline floats from_halves(halves h) {
  const words bits = __builtin_convertvector(h, words);
  const words rest = (bits & 0x7fffu) << 13;
  const words usual = rest + (112u << 23), endless = rest + (224u << 23);
  const floats near_zero = reinterpret_cast<floats>(rest + (113u << 23)) - 0x1p-14f;
  const auto size = reinterpret_cast<integers>(rest);
  words out = size >= 0x0f800000 ? endless : usual;
  out = size < 0x00800000 ? reinterpret_cast<words>(near_zero) : out;
  return reinterpret_cast<floats>(out | (bits & 0x8000u) << 16);
}

inline halves to_halves(floats x) {
  const auto bits = reinterpret_cast<words>(x);
  const words rest = bits & 0x7fffffffu;
  const words usual = (rest + 0xfffu + (rest >> 13 & 1u) - (112u << 23)) >> 13;
  // Adding 0.5 leaves a multiple of 2^-24 in the low bits.
  const words near_zero =
      reinterpret_cast<words>(reinterpret_cast<floats>(rest) + 0.5f) - 0x3f000000u;
  const words not_a_number = 0x7e00u | (rest >> 13 & 0x3ffu);
  const auto size = reinterpret_cast<integers>(rest);
  words out = size < 0x38800000 ? near_zero : usual;
  out = size >= 0x47800000 ? words{} + 0x7c00u : out;
  out = size > 0x7f800000 ? not_a_number : out;
  return __builtin_convertvector(out | (bits >> 16 & 0x8000u), halves);
}

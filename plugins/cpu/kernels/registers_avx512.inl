// Registers of 64 bytes for lanes.inl.
//
// Expects  <immintrin.h>, <cstring>; no name of the form.
// Gives    `vec`, `lanes`, `broadcast`, `quarters`, `low_words`, `high_words`, `low_pairs`,
//          `high_pairs`.
// Used by  linear_grouped_avx512*.cpp, linear_panel_avx512*.cpp, linear_panel_tiles.inl.

using vec = __m512i;
constexpr uint64_t lanes = 16;

inline vec broadcast(const int8_t* q) {
  int32_t four;
  std::memcpy(&four, q, sizeof four);
  return _mm512_set1_epi32(four);
}

inline vec quarters(const uint8_t* const* rows, uint64_t at) {
  const auto quarter = [at](const uint8_t* row) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(row + at));
  };
  vec v = _mm512_castsi128_si512(quarter(rows[0]));
  v = _mm512_inserti32x4(v, quarter(rows[4]), 1);
  v = _mm512_inserti32x4(v, quarter(rows[8]), 2);
  return _mm512_inserti32x4(v, quarter(rows[12]), 3);
}

inline vec low_words(vec a, vec b) {
  return _mm512_unpacklo_epi32(a, b);
}
inline vec high_words(vec a, vec b) {
  return _mm512_unpackhi_epi32(a, b);
}
inline vec low_pairs(vec a, vec b) {
  return _mm512_unpacklo_epi64(a, b);
}
inline vec high_pairs(vec a, vec b) {
  return _mm512_unpackhi_epi64(a, b);
}

// Registers of 32 bytes for lanes.inl.
//
// Expects  <immintrin.h>, <cstring>; no name of the form.
// Gives    `vec`, `lanes`, `broadcast`, `quarters`, `low_words`, `high_words`, `low_pairs`,
//          `high_pairs`.
// Used by  linear_grouped_avx*.cpp, linear_panel_avx*.cpp.

using vec = __m256i;
constexpr uint64_t lanes = 8;

inline vec broadcast(const int8_t* q) {
  int32_t four;
  std::memcpy(&four, q, sizeof four);
  return _mm256_set1_epi32(four);
}

inline vec quarters(const uint8_t* const* rows, uint64_t at) {
  const auto quarter = [at](const uint8_t* row) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(row + at));
  };
  return _mm256_inserti128_si256(_mm256_castsi128_si256(quarter(rows[0])), quarter(rows[4]), 1);
}

inline vec low_words(vec a, vec b) {
  return _mm256_unpacklo_epi32(a, b);
}
inline vec high_words(vec a, vec b) {
  return _mm256_unpackhi_epi32(a, b);
}
inline vec low_pairs(vec a, vec b) {
  return _mm256_unpacklo_epi64(a, b);
}
inline vec high_pairs(vec a, vec b) {
  return _mm256_unpackhi_epi64(a, b);
}

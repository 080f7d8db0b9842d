// Registers of 16 bytes for lanes.inl.
//
// Expects  <immintrin.h>, <cstring>; no name of the form.
// Gives    `vec`, `lanes`, `broadcast`, `quarters`, `low_words`, `high_words`, `low_pairs`,
//          `high_pairs`.
// Used by  linear_grouped_sse41.cpp, linear_panel_sse41.cpp.

using vec = __m128i;
constexpr uint64_t lanes = 4;

inline vec broadcast(const int8_t* q) {
  int32_t four;
  std::memcpy(&four, q, sizeof four);
  return _mm_set1_epi32(four);
}

inline vec quarters(const uint8_t* const* rows, uint64_t at) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows[0] + at));
}

inline vec low_words(vec a, vec b) {
  return _mm_unpacklo_epi32(a, b);
}
inline vec high_words(vec a, vec b) {
  return _mm_unpackhi_epi32(a, b);
}
inline vec low_pairs(vec a, vec b) {
  return _mm_unpacklo_epi64(a, b);
}
inline vec high_pairs(vec a, vec b) {
  return _mm_unpackhi_epi64(a, b);
}

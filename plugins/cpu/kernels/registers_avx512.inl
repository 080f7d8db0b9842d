// Registers of 64 bytes for linear_grouped_vector.inl.

using vec = __m512i;
constexpr uint64_t lanes = 16;

inline vec spread(const int8_t* q) {
  int32_t four;
  std::memcpy(&four, q, sizeof four);
  return _mm512_set1_epi32(four);
}

inline void transpose(vec (&v)[lanes]) {
  vec a[16], b[16];
  for (int i = 0; i < 16; i += 2) {
    a[i] = _mm512_unpacklo_epi32(v[i], v[i + 1]);
    a[i + 1] = _mm512_unpackhi_epi32(v[i], v[i + 1]);
  }
  for (int i = 0; i < 16; i += 4) {
    b[i] = _mm512_unpacklo_epi64(a[i], a[i + 2]);
    b[i + 1] = _mm512_unpackhi_epi64(a[i], a[i + 2]);
    b[i + 2] = _mm512_unpacklo_epi64(a[i + 1], a[i + 3]);
    b[i + 3] = _mm512_unpackhi_epi64(a[i + 1], a[i + 3]);
  }
  // Quarter j of b[4 n + i] has column 4 j + i of rows 4 n to 4 n + 3.
  for (int i = 0; i < 4; ++i) {
    const vec low = _mm512_shuffle_i32x4(b[i], b[i + 4], 0x44);
    const vec high = _mm512_shuffle_i32x4(b[i], b[i + 4], 0xee);
    const vec more_low = _mm512_shuffle_i32x4(b[i + 8], b[i + 12], 0x44);
    const vec more_high = _mm512_shuffle_i32x4(b[i + 8], b[i + 12], 0xee);
    v[i] = _mm512_shuffle_i32x4(low, more_low, 0x88);
    v[i + 4] = _mm512_shuffle_i32x4(low, more_low, 0xdd);
    v[i + 8] = _mm512_shuffle_i32x4(high, more_high, 0x88);
    v[i + 12] = _mm512_shuffle_i32x4(high, more_high, 0xdd);
  }
}

// Registers of 16 bytes for lanes.inl.
//
// Expects  <arm_neon.h>, <cstring>; no name of the form.
// Gives    `vec`, `lanes`, `broadcast`, `quarters`, `low_words`, `high_words`, `low_pairs`,
//          `high_pairs`.
// Used by  products_neon.inl, products_neon_dotprod.inl.

using vec = int8x16_t;
constexpr uint64_t lanes = 4;

inline vec broadcast(const int8_t* q) {
  int32_t four;
  std::memcpy(&four, q, sizeof four);
  return vreinterpretq_s8_s32(vdupq_n_s32(four));
}

inline vec quarters(const uint8_t* const* rows, uint64_t at) {
  return vreinterpretq_s8_u8(vld1q_u8(rows[0] + at));
}

inline vec low_words(vec a, vec b) {
  return vreinterpretq_s8_s32(vzip1q_s32(vreinterpretq_s32_s8(a), vreinterpretq_s32_s8(b)));
}
inline vec high_words(vec a, vec b) {
  return vreinterpretq_s8_s32(vzip2q_s32(vreinterpretq_s32_s8(a), vreinterpretq_s32_s8(b)));
}
inline vec low_pairs(vec a, vec b) {
  return vreinterpretq_s8_s64(vzip1q_s64(vreinterpretq_s64_s8(a), vreinterpretq_s64_s8(b)));
}
inline vec high_pairs(vec a, vec b) {
  return vreinterpretq_s8_s64(vzip2q_s64(vreinterpretq_s64_s8(a), vreinterpretq_s64_s8(b)));
}

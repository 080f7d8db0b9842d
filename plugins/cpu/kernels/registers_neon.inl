// Registers of 16 bytes for linear_grouped_vector.inl.

using vec = int8x16_t;
constexpr uint64_t lanes = 4;

inline vec spread(const int8_t* q) {
  int32_t four;
  std::memcpy(&four, q, sizeof four);
  return vreinterpretq_s8_s32(vdupq_n_s32(four));
}

inline void transpose(vec (&v)[lanes]) {
  const auto as_words = [](vec x) { return vreinterpretq_s32_s8(x); };
  const auto as_pairs = [](int32x4_t x) { return vreinterpretq_s64_s32(x); };
  const int32x4_t a = vtrn1q_s32(as_words(v[0]), as_words(v[1]));
  const int32x4_t b = vtrn2q_s32(as_words(v[0]), as_words(v[1]));
  const int32x4_t c = vtrn1q_s32(as_words(v[2]), as_words(v[3]));
  const int32x4_t d = vtrn2q_s32(as_words(v[2]), as_words(v[3]));
  v[0] = vreinterpretq_s8_s64(vtrn1q_s64(as_pairs(a), as_pairs(c)));
  v[1] = vreinterpretq_s8_s64(vtrn1q_s64(as_pairs(b), as_pairs(d)));
  v[2] = vreinterpretq_s8_s64(vtrn2q_s64(as_pairs(a), as_pairs(c)));
  v[3] = vreinterpretq_s8_s64(vtrn2q_s64(as_pairs(b), as_pairs(d)));
}

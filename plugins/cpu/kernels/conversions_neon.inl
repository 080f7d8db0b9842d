// f16 to f32 and back, rounded half to even, int8 to f32, and int32 that fit to int8, by the
// processor.
//
// Expects  the vector types `floats`, `integers`, `halves` and `bytes` of 4 elements; <arm_neon.h>,
//          <cstring>.
// Gives    `from_bytes`, `to_bytes`, `from_halves`, `to_halves`.
// Used by  attn_scores_neon.cpp, linear_dense_neon.cpp, rows_neon.cpp.

inline floats from_bytes(bytes b) {
  uint32_t bits = 0;
  std::memcpy(&bits, &b, sizeof b);
  return reinterpret_cast<floats>(
      vcvtq_f32_s32(vmovl_s16(vget_low_s16(vmovl_s8(vcreate_s8(bits))))));
}

inline bytes to_bytes(integers v) {
  const int16x4_t shorts = vmovn_s32(reinterpret_cast<int32x4_t>(v));
  const int8x8_t twice = vmovn_s16(vcombine_s16(shorts, shorts));
  bytes out;
  std::memcpy(&out, &twice, sizeof out);
  return out;
}

inline floats from_halves(halves h) {
  return reinterpret_cast<floats>(vcvt_f32_f16(reinterpret_cast<float16x4_t>(h)));
}

inline halves to_halves(floats x) {
  return reinterpret_cast<halves>(vcvt_f16_f32(reinterpret_cast<float32x4_t>(x)));
}

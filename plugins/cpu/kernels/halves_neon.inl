// f16 to f32 and back, rounded half to even, by the processor. `floats` and `halves` hold 4
// elements.

inline floats from_halves(halves h) {
  return reinterpret_cast<floats>(vcvt_f32_f16(reinterpret_cast<float16x4_t>(h)));
}

inline halves to_halves(floats x) {
  return reinterpret_cast<halves>(vcvt_f16_f32(reinterpret_cast<float32x4_t>(x)));
}

#include <cmath>

#include "ops.hpp"

namespace bitnet::cpu {
namespace {

// Half to even, as the processor rounds unless told otherwise: adding 1.5 * 2^23 leaves no bits
// below 1. Exact for |x| < 2^22; what is larger is clamped anyway.
float round_half_even(float x) {
  constexpr float shift = 12582912.0f;
  return std::fabs(x) < 4194304.0f ? (x + shift) - shift : x;
}

}  // namespace

void act_quant_row(const float* x, uint64_t k, int8_t* q, float* s) {
  float largest = 0;  // comparisons pass over NaN
  for (uint64_t i = 0; i < k; ++i) largest = std::fabs(x[i]) > largest ? std::fabs(x[i]) : largest;
  const float scale = 127.0f / (largest > 1e-5f ? largest : 1e-5f);
  *s = scale;
  for (uint64_t i = 0; i < k; ++i) {
    float v = round_half_even(x[i] * scale);
    v = v > -128.0f ? v : -128.0f;  // NaN becomes -128: any value will do, undefined behaviour not
    v = v < 127.0f ? v : 127.0f;
    q[i] = static_cast<int8_t>(v);
  }
}

}  // namespace bitnet::cpu

// The definition, element by element.

#include <cmath>
#include <cstring>

#include "bitnet/sdk/formats.hpp"
#include "rows.hpp"

namespace bitnet::cpu {
namespace {

// Half to even, the processor's default rounding: adding 1.5 * 2^23 leaves no bits
// below 1. Exact for |x| < 2^22; what is larger is clamped anyway.
float round_half_even(float x) {
  constexpr float shift = 12582912.0f;
  return std::fabs(x) < 4194304.0f ? (x + shift) - shift : x;
}

template <class T>
T total(T (&p)[16]) {
  for (int half = 8; half != 0; half /= 2)
    for (int j = 0; j < half; ++j) p[j] += p[j + half];
  return p[0];
}

float power_of_two(uint32_t e) {
  const uint32_t bits = (e + 127) << 23;
  float out;
  std::memcpy(&out, &bits, sizeof out);
  return out;
}

// e^x within 2 units in the last place; NaN stays NaN. Below e^-80 the result is 0: that changes no
// sum that contains a 1, and denormal numbers, also in later products, make processors six times
// slower.
// Source  Cephes, expf: x = n ln 2 + r, a polynomial for e^r, ln 2 in two parts.
float exponential(float x) {
  constexpr float shift = 12582912.0f;  // 1.5 * 2^23: the low bits of x + shift are round(x)
  if (x < -80.0f) return 0;
  x = x > 89.0f ? 89.0f : x;
  const float t = x * 1.44269504f + shift;
  const float n = t - shift;
  const float r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = (p * (r * r) + r) + 1.0f;
  uint32_t bits;
  std::memcpy(&bits, &t, sizeof bits);
  const uint32_t e = bits - 0x4b400000u;
  const auto first = static_cast<uint32_t>(static_cast<int32_t>(e) >> 1);  // 2^e in two factors:
  return (p * power_of_two(first)) * power_of_two(e - first);              // it may be 2^128
}

}  // namespace

void rms_norm_scalar(const float* x, const float* w, float eps, uint64_t k, float* y) {
  double sums[16] = {};
  for (uint64_t i = 0; i < k; ++i)
    sums[i % 16] += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  const auto mean = static_cast<float>(total(sums) / static_cast<double>(k));
  const float factor = 1.0f / std::sqrt(mean + eps);
  for (uint64_t i = 0; i < k; ++i) y[i] = x[i] * factor * w[i];
}

void act_quant_scalar(const float* x, uint64_t k, int8_t* q, float* s) {
  float largest = 0;  // comparisons ignore NaN
  for (uint64_t i = 0; i < k; ++i) largest = std::fabs(x[i]) > largest ? std::fabs(x[i]) : largest;
  const float scale = 127.0f / (largest > 1e-5f ? largest : 1e-5f);
  *s = scale;
  for (uint64_t i = 0; i < k; ++i) {
    float v = round_half_even(x[i] * scale);
    v = v > -128.0f ? v : -128.0f;  // NaN becomes -128: converting NaN would be undefined
    v = v < 127.0f ? v : 127.0f;
    q[i] = static_cast<int8_t>(v);
  }
}

void act_quant_groups_scalar(const float* x, uint64_t k, uint64_t group, int8_t* q, float* d) {
  for (uint64_t at = 0; at < k; at += group, x += group, q += group, ++d) {
    float largest = 1e-30f;
    for (uint64_t i = 0; i < group; ++i)
      largest = std::fabs(x[i]) > largest ? std::fabs(x[i]) : largest;
    const float scale = 127.0f / largest;
    *d = largest / 127.0f;
    for (uint64_t i = 0; i < group; ++i) {
      float v = round_half_even(x[i] * scale);
      v = v > -127.0f ? v : -127.0f;
      v = v < 127.0f ? v : 127.0f;
      q[i] = static_cast<int8_t>(v);
    }
  }
}

void hadamard_scalar(const float* x, const float* factors, bool first, uint64_t k, uint64_t block,
                     float* y) {
  for (uint64_t i = 0; i < k; ++i) y[i] = factors && first ? x[i] * factors[i] : x[i];
  for (uint64_t d = 1; d < block; d *= 2)
    for (uint64_t i = 0; i < k; i += 2 * d)
      for (uint64_t j = i; j < i + d; ++j) {
        const float a = y[j], b = y[j + d];
        y[j] = a + b;
        y[j + d] = a - b;
      }
  const auto scale = static_cast<float>(1 / __builtin_sqrt(static_cast<double>(block)));
  for (uint64_t i = 0; i < k; ++i) y[i] *= scale;
  if (!factors || first) return;
  for (uint64_t i = 0; i < k; ++i) y[i] *= factors[i];
}

void add_scalar(const float* a, const float* b, uint64_t k, float* y) {
  for (uint64_t i = 0; i < k; ++i) y[i] = a[i] + b[i];
}

void mul_scalar(const float* a, const float* b, uint64_t k, float* y) {
  for (uint64_t i = 0; i < k; ++i) y[i] = a[i] * b[i];
}

void relu2_scalar(const float* x, uint64_t k, float* y) {
  for (uint64_t i = 0; i < k; ++i) {
    const float positive = x[i] > 0 ? x[i] : 0;
    y[i] = positive * positive;
  }
}

void silu_scalar(const float* x, uint64_t k, float* y) {
  for (uint64_t i = 0; i < k; ++i) y[i] = x[i] / (1.0f + exponential(-x[i]));
}

// a and b of ops.h.
void gelu_scalar(const float* x, uint64_t k, float* y) {
  for (uint64_t i = 0; i < k; ++i) {
    const float inner = 1.5957691216f + 0.0713548163f * (x[i] * x[i]);
    y[i] = x[i] / (1.0f + exponential(-x[i] * inner));
  }
}

void scale_scalar(const float* x, float factor, uint64_t k, float* y) {
  for (uint64_t i = 0; i < k; ++i) y[i] = x[i] * factor;
}

void sigmoid_scalar(const float* x, uint64_t k, float* y) {
  for (uint64_t i = 0; i < k; ++i) y[i] = 1.0f / (1.0f + exponential(-x[i]));
}

void delta_rule_scalar(const delta_token& t, uint64_t d_k, uint64_t d_v, float* state, float* y) {
  for (uint64_t j = 0; j < d_v; ++j) {
    float seen = 0, out = 0;
    for (uint64_t i = 0; i < d_k; ++i)
      seen += (t.k[i] * t.k_factor) * (state[i * d_v + j] * t.decay);
    const float u = t.beta * (t.v[j] - seen);
    for (uint64_t i = 0; i < d_k; ++i) {
      float& s = state[i * d_v + j];
      s = s * t.decay + (t.k[i] * t.k_factor) * u;
      out += (t.q[i] * t.q_factor) * s;
    }
    y[j] = out;
  }
}

float softmax_scalar(float* x, uint64_t n, float scale) {
  float largest = x[0] * scale;
  for (uint64_t i = 0; i < n; ++i) {
    x[i] *= scale;
    largest = x[i] > largest ? x[i] : largest;
  }
  float sums[16] = {};
  for (uint64_t i = 0; i < n; ++i) {
    x[i] = exponential(x[i] - largest);
    sums[i % 16] += x[i];
  }
  return total(sums);
}

void rotate_scalar(const float* x, const rotation& r, float* y) {
  const uint64_t step = r.neox ? 1 : 2, apart = r.neox ? r.pairs : 1;
  for (uint64_t h = 0; h < r.heads; ++h, x += r.head_dim, y += r.head_dim) {
    for (uint64_t i = 0; i < r.pairs; ++i) {
      const float a = x[i * step], b = x[i * step + apart];
      y[i * step] = a * r.cosines[i] - b * r.sines[i];
      y[i * step + apart] = a * r.sines[i] + b * r.cosines[i];
    }
    for (uint64_t i = 2 * r.pairs; i < r.head_dim; ++i) y[i] = x[i];
  }
}

void halves_scalar(const float* x, uint64_t k, uint8_t* y) {
  for (uint64_t i = 0; i < k; ++i) {
    const uint16_t half = sdk::f32_to_f16(x[i]);
    std::memcpy(y + 2 * i, &half, sizeof half);
  }
}

void widen_scalar(const uint8_t* x, uint64_t k, float* y) {
  for (uint64_t i = 0; i < k; ++i) y[i] = sdk::f16_to_f32(sdk::load<uint16_t>(x + 2 * i));
}

void from_q4_0_scalar(const uint8_t* x, uint64_t k, float* y) {
  sdk::decode(BITNET_FORMAT_Q4_0, x, 0, k, y);
}

void from_q4_k_scalar(const uint8_t* x, uint64_t k, float* y) {
  sdk::decode(BITNET_FORMAT_Q4_K, x, 0, k, y);
}

void from_q6_k_scalar(const uint8_t* x, uint64_t k, float* y) {
  sdk::decode(BITNET_FORMAT_Q6_K, x, 0, k, y);
}

void quant_error_scalar(const float* w, const int8_t* q, float d, uint64_t k, float* error,
                        float* size) {
  float errors[16] = {}, sizes[16] = {};
  for (uint64_t i = 0; i < k; ++i) {
    const float near = d * static_cast<float>(q[i]);
    errors[i % 16] += (w[i] - near) * (w[i] - near);
    sizes[i % 16] += near * near;
  }
  *error = total(errors);
  *size = total(sizes);
}

void q8_0_scalar(const float* x, uint64_t k, uint8_t* y) {
  for (; k != 0; k -= 32, x += 32, y += 34) {
    float largest = 0;  // comparisons ignore NaN
    for (int i = 0; i < 32; ++i) largest = std::fabs(x[i]) > largest ? std::fabs(x[i]) : largest;
    const float exact = largest / 127.0f;
    const uint16_t d = sdk::f32_to_f16(exact < 65504.0f ? exact : 65504.0f);
    std::memcpy(y, &d, sizeof d);
    const float step = sdk::f16_to_f32(d), inverse = step > 0 ? 1.0f / step : 0;
    for (int i = 0; i < 32; ++i) {
      float v = round_half_even(x[i] * inverse);
      v = v > -127.0f ? v : -127.0f;  // NaN becomes -127, and infinity times 0 too
      v = v < 127.0f ? v : 127.0f;
      y[2 + i] = static_cast<uint8_t>(static_cast<int8_t>(v));
    }
  }
}

void q4_0_scalar(const float* x, uint64_t k, uint8_t* y) {
  for (; k != 0; k -= 32, x += 32, y += 18) {
    float extreme = 0;  // comparisons ignore NaN
    for (int i = 0; i < 32; ++i) extreme = std::fabs(x[i]) > std::fabs(extreme) ? x[i] : extreme;
    float step = extreme / -8.0f;
    step = step > -65504.0f ? step : -65504.0f;
    step = step < 65504.0f ? step : 65504.0f;
    const uint16_t d = sdk::f32_to_f16(step);
    std::memcpy(y, &d, sizeof d);
    const float inverse = (d & 0x7fffu) != 0 ? 1.0f / step : 0;
    const auto code = [inverse](float one) {
      const float scaled = one * inverse;
      float v = scaled + 8.5f;
      v = v > 0 ? v : 0;  // NaN becomes 0
      v = v < 15.0f ? v : 15.0f;
      return static_cast<uint8_t>(v);
    };
    for (int i = 0; i < 16; ++i) y[2 + i] = static_cast<uint8_t>(code(x[i]) | code(x[i + 16]) << 4);
  }
}

}  // namespace bitnet::cpu

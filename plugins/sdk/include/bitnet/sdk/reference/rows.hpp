// SPDX-License-Identifier: Apache-2.0 OR MIT
#pragma once
// Ops on one row of numbers, as plainly as bitnet/abi/ops.h defines them.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "bitnet/abi/ops.h"
#include "bitnet/abi/tensor.h"
#include "bitnet/sdk/compute/weight.hpp"
#include "bitnet/sdk/formats.hpp"

namespace bitnet::sdk::reference {

// Row `token` of a matrix in any format.
inline void embed_gather(const weight& w, uint64_t token, float* y) noexcept {
  decode(w.format, w.row(token), 0, w.k, y);
  if (w.format != BITNET_FORMAT_TERNARY2) return;
  for (uint64_t i = 0; i < w.k; ++i)
    y[i] *= w.scales[w.scale_group == 0 ? 0 : (token * w.k + i) / w.scale_group];
}

inline void rms_norm(const float* x, const float* weights, float eps, uint64_t k,
                     float* y) noexcept {
  double squares = 0;
  for (uint64_t i = 0; i < k; ++i) squares += double{x[i]} * double{x[i]};
  const auto mean = static_cast<float>(squares / static_cast<double>(k));
  const float factor = 1.0f / std::sqrt(mean + eps);
  for (uint64_t i = 0; i < k; ++i) y[i] = x[i] * factor * weights[i];
}

// Codes of a row, and the scale by which it was multiplied.
inline void act_quant_i8(const float* x, uint64_t k, int8_t* q, float* scale) noexcept {
  float largest = 0;
  for (uint64_t i = 0; i < k; ++i) largest = std::max(largest, std::fabs(x[i]));
  *scale = 127.0f / std::max(largest, 1e-5f);
  for (uint64_t i = 0; i < k; ++i) {
    const float code = std::nearbyint(x[i] * *scale);  // half to even
    // In this order NaN becomes -128; converting it would be undefined.
    q[i] = static_cast<int8_t>(std::min(std::max(-128.0f, code), 127.0f));
  }
}

// Codes and factors of each group of a row.
inline void act_quant_i8_grouped(const float* x, uint64_t k, uint64_t group, int8_t* q,
                                 float* d) noexcept {
  for (uint64_t at = 0; at < k; at += group, x += group, q += group) {
    float largest = 1e-30f;
    for (uint64_t i = 0; i < group; ++i) largest = std::max(largest, std::fabs(x[i]));
    const float scale = 127.0f / largest;
    for (uint64_t i = 0; i < group; ++i) {
      const float code = std::nearbyint(x[i] * scale);
      q[i] = static_cast<int8_t>(std::min(std::max(-127.0f, code), 127.0f));
    }
    d[at / group] = largest / 127.0f;
  }
}

// Multiplies each `block` of a row by the Hadamard matrix; `factors` (k) may be nullptr.
inline void hadamard(const float* x, const float* factors, int32_t place, uint64_t k,
                     uint64_t block, float* y) noexcept {
  const bool first = factors && place == BITNET_HADAMARD_FACTORS_FIRST;
  for (uint64_t i = 0; i < k; ++i) y[i] = first ? x[i] * factors[i] : x[i];
  for (uint64_t d = 1; d < block; d *= 2)
    for (uint64_t i = 0; i < k; ++i) {
      if ((i & d) != 0) continue;
      const float a = y[i], b = y[i + d];
      y[i] = a + b;
      y[i + d] = a - b;
    }
  const auto scale = static_cast<float>(1 / std::sqrt(static_cast<double>(block)));
  for (uint64_t i = 0; i < k; ++i) {
    y[i] *= scale;
    if (factors && !first) y[i] *= factors[i];
  }
}

// n heads of head_dim elements, of which the first `turned` are rotated; `divisors` may be nullptr.
inline void rope(const float* x, uint64_t n_heads, uint64_t head_dim, uint64_t turned, int32_t kind,
                 float base, float position_scale, int32_t position, const float* divisors,
                 float* y) noexcept {
  std::copy_n(x, n_heads * head_dim, y);
  const bool neox = kind == BITNET_ROPE_NEOX;
  for (uint64_t i = 0; i < turned / 2; ++i) {
    const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(turned);
    double angle = position * double{position_scale} * std::pow(double{base}, exponent);
    if (divisors) angle /= double{divisors[i]};
    const auto cosine = static_cast<float>(std::cos(angle));
    const auto sine = static_cast<float>(std::sin(angle));
    const uint64_t a = neox ? i : 2 * i, b = neox ? i + turned / 2 : 2 * i + 1;
    for (uint64_t head = 0; head < n_heads * head_dim; head += head_dim) {
      y[head + a] = x[head + a] * cosine - x[head + b] * sine;
      y[head + b] = x[head + a] * sine + x[head + b] * cosine;
    }
  }
}

inline void add(const float* a, const float* b, uint64_t k, float* y) noexcept {
  for (uint64_t i = 0; i < k; ++i) y[i] = a[i] + b[i];
}
inline void mul(const float* a, const float* b, uint64_t k, float* y) noexcept {
  for (uint64_t i = 0; i < k; ++i) y[i] = a[i] * b[i];
}
inline void relu2(const float* x, uint64_t k, float* y) noexcept {
  for (uint64_t i = 0; i < k; ++i) y[i] = x[i] > 0 ? x[i] * x[i] : 0;
}
inline void silu(const float* x, uint64_t k, float* y) noexcept {
  for (uint64_t i = 0; i < k; ++i) y[i] = x[i] / (1.0f + std::exp(-x[i]));
}
// a and b of ops.h.
inline void gelu(const float* x, uint64_t k, float* y) noexcept {
  constexpr float a = 1.5957691216f, b = 0.0713548163f;
  for (uint64_t i = 0; i < k; ++i) y[i] = x[i] / (1.0f + std::exp(-x[i] * (a + b * (x[i] * x[i]))));
}
inline void sigmoid(const float* x, uint64_t k, float* y) noexcept {
  for (uint64_t i = 0; i < k; ++i) y[i] = 1.0f / (1.0f + std::exp(-x[i]));
}
inline void scale(const float* x, float factor, uint64_t k, float* y) noexcept {
  for (uint64_t i = 0; i < k; ++i) y[i] = x[i] * factor;
}

// Copies parts of a row side by side; `ints` are COLUMNS'.
inline void columns(const float* x, const int32_t* ints, float* y) noexcept {
  for (int64_t a = 0; a < ints[4]; ++a)
    for (int64_t b = 0; b < ints[2]; ++b)
      y = std::copy_n(x + ints[1] + a * ints[5] + b * ints[3], ints[0], y);
}

// Row `output` of the result is row rows[output] of x.
inline void gather_rows(const float* x, const int32_t* rows, uint64_t output, uint64_t k,
                        float* y) noexcept {
  std::copy_n(x + static_cast<uint64_t>(rows[output]) * k, k, y + output * k);
}

}  // namespace bitnet::sdk::reference

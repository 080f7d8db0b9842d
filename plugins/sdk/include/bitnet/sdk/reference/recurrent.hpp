// SPDX-License-Identifier: Apache-2.0 OR MIT
#pragma once
// Ops on the state of a sequence, as plainly as bitnet/abi/ops.h defines them.
//
// Source  Gated Delta Networks, arXiv:2412.06464

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "bitnet/abi/ops.h"

namespace bitnet::sdk::reference {

// Columns [first, last) of row t of a short convolution: x and y (rows, k), w (k, n). `past` (n -
// 1, k) has the rows before x; nullptr: zeros.
inline void short_conv(const float* x, const float* past, const float* w, uint64_t t, uint64_t k,
                       uint64_t n, uint64_t first, uint64_t last, float* y) noexcept {
  for (uint64_t c = first; c < last; ++c) {
    float sum = 0;
    for (uint64_t i = 0; i < n; ++i) {
      const uint64_t row = t + i;  // of past and x, one behind the other
      if (row >= n - 1)
        sum += w[c * n + i] * x[(row - (n - 1)) * k + c];
      else if (past)
        sum += w[c * n + i] * past[row * k + c];
    }
    y[t * k + c] = sum;
  }
}

// Stores the last n - 1 of the rows `past` and x (rows, k) in `past`; fresh: `past` was zeros.
inline void short_conv_keep(const float* x, uint64_t rows, uint64_t k, uint64_t n, uint64_t first,
                            uint64_t last, bool fresh, float* past) noexcept {
  for (uint64_t i = 0; i < n - 1; ++i) {
    const uint64_t row = rows + i;  // ascending, so rows are read before they are overwritten
    for (uint64_t c = first; c < last; ++c)
      past[i * k + c] = row >= n - 1 ? x[(row - (n - 1)) * k + c] : fresh ? 0 : past[row * k + c];
  }
}

// Decays of n heads, then their strengths, for one token; `weights` (2, n).
inline void delta_gates(const float* a, const float* b, const float* weights, uint64_t n,
                        float* y) noexcept {
  for (uint64_t h = 0; h < n; ++h) {
    const float z = a[h] + weights[n + h];
    const float softplus = std::max(z, 0.0f) + std::log1p(std::exp(-std::fabs(z)));
    y[h] = std::exp(weights[h] * softplus);
    y[n + h] = 1.0f / (1.0f + std::exp(-b[h]));
  }
}

// 1 / the length of a head.
inline float inverse_length(const float* x, uint64_t n, float eps) noexcept {
  double squares = 0;
  for (uint64_t i = 0; i < n; ++i) squares += double{x[i]} * double{x[i]};
  return 1.0f / std::sqrt(static_cast<float>(squares) + eps);
}

// One token of one head: q and k (d_k), v and y (d_v), state (d_k, d_v). Sums run over rows of the
// state, so columns are contiguous.
inline void delta_rule(const float* q, const float* k, const float* v, float decay, float beta,
                       float scale, float eps, uint64_t d_k, uint64_t d_v, float* state,
                       float* y) noexcept {
  const float of_q = inverse_length(q, d_k, eps), of_k = inverse_length(k, d_k, eps);
  std::fill_n(y, d_v, 0.0f);
  for (uint64_t i = 0; i < d_k; ++i)
    for (uint64_t j = 0; j < d_v; ++j) {
      float& s = state[i * d_v + j];
      s *= decay;
      y[j] += k[i] * of_k * s;
    }
  for (uint64_t j = 0; j < d_v; ++j) y[j] = beta * (v[j] - y[j]);
  for (uint64_t i = 0; i < d_k; ++i)
    for (uint64_t j = 0; j < d_v; ++j) state[i * d_v + j] += k[i] * of_k * y[j];
  std::fill_n(y, d_v, 0.0f);
  for (uint64_t i = 0; i < d_k; ++i)
    for (uint64_t j = 0; j < d_v; ++j) y[j] += q[i] * of_q * scale * state[i * d_v + j];
}

}  // namespace bitnet::sdk::reference

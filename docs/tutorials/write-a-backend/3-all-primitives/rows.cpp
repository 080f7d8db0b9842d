// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "rest.hpp"

namespace sketch {

using bitnet::sdk::call;
using bitnet::sdk::share;

void rms_norm(const call& c, const share& s) noexcept {
  for (uint64_t r = s.first; r < s.last; ++r) {
    const float* x = c.input<float>(0) + r * c.k;
    double sum = 0;
    for (uint64_t k = 0; k < c.k; ++k) sum += double{x[k]} * double{x[k]};
    const auto mean = static_cast<float>(sum / static_cast<double>(c.k));
    const float factor = 1.0f / std::sqrt(mean + c.floats[0]);
    for (uint64_t k = 0; k < c.k; ++k)
      c.output<float>(0)[r * c.k + k] = x[k] * factor * c.w->f32()[k];
  }
}

// y_i = f(i) for the elements of the rows of this share.
template <class Function>
static void each(const call& c, const share& s, Function f) noexcept {
  for (uint64_t i = s.first * c.k; i < s.last * c.k; ++i) c.output<float>(0)[i] = f(i);
}

void add(const call& c, const share& s) noexcept {
  each(c, s, [&](uint64_t i) { return c.input<float>(0)[i] + c.input<float>(1)[i]; });
}

void mul(const call& c, const share& s) noexcept {
  each(c, s, [&](uint64_t i) { return c.input<float>(0)[i] * c.input<float>(1)[i]; });
}

void relu2(const call& c, const share& s) noexcept {
  each(c, s, [&](uint64_t i) {
    const float x = c.input<float>(0)[i];
    return x > 0 ? x * x : 0;
  });
}

void silu(const call& c, const share& s) noexcept {
  each(c, s, [&](uint64_t i) {
    const float x = c.input<float>(0)[i];
    return x / (1.0f + std::exp(-x));
  });
}

void linear_dense(const call& c, const share& s) noexcept {
  constexpr uint64_t piece = 256;  // a multiple of every format's block
  float row[piece];
  for (uint64_t m = s.first; m < s.last; ++m) {
    for (uint64_t t = 0; t < c.rows; ++t) c.output<float>(0)[t * c.m + m] = 0;
    for (uint64_t first = 0; first < c.k; first += piece) {
      const uint64_t n = std::min(piece, c.k - first);
      bitnet::sdk::decode(c.w->format, c.w->row(m), first, n, row);
      for (uint64_t t = 0; t < c.rows; ++t) {
        const float* x = c.input<float>(0) + t * c.k + first;
        float& y = c.output<float>(0)[t * c.m + m];
        for (uint64_t k = 0; k < n; ++k) y += row[k] * x[k];
      }
    }
  }
}

}  // namespace sketch

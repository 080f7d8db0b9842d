// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>

#include "rest.hpp"

namespace sketch {

using bitnet::sdk::call;
using bitnet::sdk::share;

void rope(const call& c, const share& s) noexcept {
  const auto n_heads = static_cast<uint64_t>(c.ints[0]);
  const auto head_dim = static_cast<uint64_t>(c.ints[1]);
  const auto turned = static_cast<uint64_t>(c.ints[2]);
  const bool neox = c.ints[3] == BITNET_ROPE_NEOX;
  for (uint64_t t = s.first; t < s.last; ++t) {
    const float* x = c.input<float>(0) + t * c.k;
    float* y = c.output<float>(0) + t * c.k;
    std::copy_n(x, c.k, y);  // dimensions past `turned` stay as they are
    for (uint64_t i = 0; i < turned / 2; ++i) {
      double angle = c.step->positions[t] * double{c.floats[1]} *
                     std::pow(double{c.floats[0]},
                              -2.0 * static_cast<double>(i) / static_cast<double>(turned));
      if (c.w != nullptr) angle /= double{c.w->f32()[i]};
      const auto cosine = static_cast<float>(std::cos(angle));
      const auto sine = static_cast<float>(std::sin(angle));
      const uint64_t a = neox ? i : 2 * i, b = neox ? i + turned / 2 : 2 * i + 1;
      for (uint64_t head = 0; head < n_heads * head_dim; head += head_dim) {
        y[head + a] = x[head + a] * cosine - x[head + b] * sine;
        y[head + b] = x[head + a] * sine + x[head + b] * cosine;
      }
    }
  }
}

// A backend that does not say device.kv_dtypes gets pools of f32 and f16 only.
static void store(uint8_t* to, uint32_t dtype, const float* x, uint64_t n) noexcept {
  if (dtype == BITNET_DTYPE_F32) {
    std::memcpy(to, x, n * sizeof *x);
    return;
  }
  for (uint64_t i = 0; i < n; ++i) {
    const uint16_t half = bitnet::sdk::f32_to_f16(x[i]);
    std::memcpy(to + 2 * i, &half, sizeof half);
  }
}

static float element(const uint8_t* from, uint32_t dtype, uint64_t i) noexcept {
  if (dtype == BITNET_DTYPE_F32) return bitnet::sdk::load<float>(from + 4 * i);
  return bitnet::sdk::f16_to_f32(bitnet::sdk::load<uint16_t>(from + 2 * i));
}

void kv_write(const call& c, const share& s) noexcept {
  const auto& kv = c.step->kv;
  const auto layer = static_cast<uint64_t>(c.ints[0]);
  for (uint64_t t = s.first; t < s.last; ++t) {
    const auto slot = static_cast<uint64_t>(c.step->slots[t]);
    for (uint64_t head = 0; head < kv.n_kv_heads; ++head) {
      const uint64_t at = t * c.k + head * kv.head_dim;
      store(kv.k(layer, slot, head), kv.dtype_k, c.input<float>(0) + at, kv.head_dim);
      store(kv.v(layer, slot, head), kv.dtype_v, c.input<float>(1) + at, kv.head_dim);
    }
  }
}

void attn_paged(const call& c, const share& s) noexcept {
  const auto& kv = c.step->kv;
  const auto layer = static_cast<uint64_t>(c.ints[0]);
  const auto n_kv_heads = static_cast<uint64_t>(c.ints[2]);
  const auto head_dim = static_cast<uint64_t>(c.ints[3]);
  const uint64_t heads_each = static_cast<uint64_t>(c.ints[1]) / n_kv_heads;
  for (uint64_t unit = s.first; unit < s.last; ++unit) {
    const uint64_t t = unit / n_kv_heads, kv_head = unit % n_kv_heads;
    const auto sight = c.step->sees(t, c.ints[4]);
    // The slot of the n-th position that the token sees.
    const auto slot = [&](uint64_t n) {
      const uint64_t position = sight.position(n);
      const auto block = static_cast<uint64_t>(c.step->blocks_of(t)[position / kv.block_tokens]);
      return block * kv.block_tokens + position % kv.block_tokens;
    };
    for (uint64_t h = kv_head * heads_each; h < (kv_head + 1) * heads_each; ++h) {
      const float* q = c.input<float>(0) + t * c.k + h * head_dim;
      float* y = c.output<float>(0) + t * c.k + h * head_dim;
      float* score = s.scratch;  // (positions that are seen)
      float largest = -INFINITY, sum = 0;
      for (uint64_t n = 0; n < sight.count(); ++n) {
        const uint8_t* key = kv.k(layer, slot(n), kv_head);
        score[n] = 0;
        for (uint64_t d = 0; d < head_dim; ++d) score[n] += q[d] * element(key, kv.dtype_k, d);
        score[n] *= c.floats[0];
        largest = std::max(largest, score[n]);
      }
      for (uint64_t n = 0; n < sight.count(); ++n) {
        score[n] = std::exp(score[n] - largest);
        sum += score[n];
      }
      std::fill_n(y, head_dim, 0.0f);
      for (uint64_t n = 0; n < sight.count(); ++n) {
        const uint8_t* value = kv.v(layer, slot(n), kv_head);
        for (uint64_t d = 0; d < head_dim; ++d)
          y[d] += score[n] / sum * element(value, kv.dtype_v, d);
      }
    }
  }
}

}  // namespace sketch

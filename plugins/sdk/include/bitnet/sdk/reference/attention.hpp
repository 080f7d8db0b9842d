// SPDX-License-Identifier: Apache-2.0 OR MIT
#pragma once
// Keys and values of one head: how they are stored, and attention over them.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "bitnet/abi/tensor.h"
#include "bitnet/sdk/compute/kv_storage.hpp"
#include "bitnet/sdk/formats.hpp"

namespace bitnet::sdk::reference {

// The types of keys and values that this file handles, as in bitnet_device_info.
inline constexpr uint32_t kv_dtypes = 0
#define BITNET_KV_BIT_OF(NAME) | 1u << BITNET_DTYPE_##NAME
    BITNET_SDK_KV_TYPES(BITNET_KV_BIT_OF)
#undef BITNET_KV_BIT_OF
    ;

// Writes one block of BITNET_DTYPE_Q8_0.
inline void write_q8_0(const float* x, uint8_t* to) noexcept {
  float largest = 0;  // NaN is not larger than anything
  for (uint64_t i = 0; i < BITNET_Q8_0_BLOCK; ++i) largest = std::max(largest, std::fabs(x[i]));
  const uint16_t d = f32_to_f16(std::min(largest / 127.0f, 65504.0f));
  std::memcpy(to, &d, sizeof d);
  const float step = f16_to_f32(d);
  for (uint64_t i = 0; i < BITNET_Q8_0_BLOCK; ++i) {
    const float q = step == 0 ? 0.0f : std::nearbyint(x[i] * (1.0f / step));
    // In this order NaN becomes -127; converting it would be undefined.
    const auto code = static_cast<int8_t>(std::min(std::max(-127.0f, q), 127.0f));
    std::memcpy(to + 2 + i, &code, sizeof code);
  }
}

// Writes one block of BITNET_DTYPE_Q4_0.
inline void write_q4_0(const float* x, uint8_t* to) noexcept {
  float extreme = 0;  // NaN is not larger than anything
  for (uint64_t i = 0; i < BITNET_Q4_0_BLOCK; ++i)
    if (std::fabs(x[i]) > std::fabs(extreme)) extreme = x[i];
  const float step = std::min(std::max(extreme / -8.0f, -65504.0f), 65504.0f);
  const uint16_t d = f32_to_f16(step);
  std::memcpy(to, &d, sizeof d);
  const float inverse = (d & 0x7fffu) != 0 ? 1.0f / step : 0.0f;  // 0: all codes become 8
  const auto code = [inverse](float v) {
    const float scaled = v * inverse;
    // In this order NaN becomes 0; converting it would be undefined.
    return static_cast<uint8_t>(std::min(std::max(0.0f, scaled + 8.5f), 15.0f));
  };
  for (uint64_t i = 0; i < BITNET_Q4_0_BLOCK / 2; ++i)
    to[2 + i] = static_cast<uint8_t>(code(x[i]) | code(x[i + BITNET_Q4_0_BLOCK / 2]) << 4);
}

// Stores n elements of a head in a pool's type; for block types n is a multiple of 32.
inline void kv_write(const float* x, uint64_t n, uint32_t dtype, uint8_t* to) noexcept {
  if (dtype == BITNET_DTYPE_F32) {
    std::memcpy(to, x, n * sizeof *x);
  } else if (dtype == BITNET_DTYPE_F16) {
    for (uint64_t i = 0; i < n; ++i) {
      const uint16_t half = f32_to_f16(x[i]);
      std::memcpy(to + 2 * i, &half, sizeof half);
    }
  } else if (dtype == BITNET_DTYPE_Q8_0) {
    for (uint64_t i = 0; i < n; i += BITNET_Q8_0_BLOCK, to += BITNET_Q8_0_BLOCK_BYTES)
      write_q8_0(x + i, to);
  } else if (dtype == BITNET_DTYPE_Q4_0) {
    for (uint64_t i = 0; i < n; i += BITNET_Q4_0_BLOCK, to += BITNET_Q4_0_BLOCK_BYTES)
      write_q4_0(x + i, to);
  }
}

// Reads elements [first, first + n) of a stored head; first is a multiple of 32.
inline void kv_read(const uint8_t* from, uint32_t dtype, uint64_t first, uint64_t n,
                    float* out) noexcept {
  switch (dtype) {
#define BITNET_DECODE_AS(NAME) \
  case BITNET_DTYPE_##NAME:    \
    return decode(BITNET_FORMAT_##NAME, from, first, n, out);
    BITNET_SDK_KV_TYPES(BITNET_DECODE_AS)
#undef BITNET_DECODE_AS
    default:  // describe() rejects other types
      std::fill_n(out, n, 0.0f);
  }
}

// Attention of one token, for heads that share their keys and values: q and y (heads, head_dim).
// The token sees `seen` positions; key(n) and value(n) return their stored rows; scores (heads,
// seen).
template <class Key, class Value>
void attention(const float* q, uint64_t heads, uint64_t head_dim, float scale, uint64_t seen,
               const Key& key, uint32_t dtype_k, const Value& value, uint32_t dtype_v,
               float* scores, float* y) noexcept {
  constexpr uint64_t piece = 32;
  float part[piece];
  for (uint64_t n = 0; n < seen; ++n) {
    for (uint64_t h = 0; h < heads; ++h) scores[h * seen + n] = 0;
    for (uint64_t d = 0; d < head_dim; d += piece) {
      const uint64_t width = std::min(piece, head_dim - d);
      kv_read(key(n), dtype_k, d, width, part);
      for (uint64_t h = 0; h < heads; ++h) {
        float sum = 0;
        for (uint64_t i = 0; i < width; ++i) sum += q[h * head_dim + d + i] * part[i];
        scores[h * seen + n] += sum;
      }
    }
  }
  for (uint64_t h = 0; h < heads; ++h) {
    float* s = scores + h * seen;
    float largest = -INFINITY, sum = 0;
    for (uint64_t n = 0; n < seen; ++n) {
      s[n] *= scale;
      largest = std::max(largest, s[n]);
    }
    for (uint64_t n = 0; n < seen; ++n) {
      s[n] = std::exp(s[n] - largest);
      sum += s[n];
    }
    for (uint64_t n = 0; n < seen; ++n) s[n] /= sum;
  }
  std::fill_n(y, heads * head_dim, 0.0f);
  for (uint64_t n = 0; n < seen; ++n) {
    for (uint64_t d = 0; d < head_dim; d += piece) {
      const uint64_t width = std::min(piece, head_dim - d);
      kv_read(value(n), dtype_v, d, width, part);
      for (uint64_t h = 0; h < heads; ++h)
        for (uint64_t i = 0; i < width; ++i)
          y[h * head_dim + d + i] += scores[h * seen + n] * part[i];
    }
  }
}

}  // namespace bitnet::sdk::reference

#pragma once
// A token's keys and values as rows of the KV pool.

#include "common.cuh"

namespace bitnet::kernels {

// The rotation of a head by its position, as in rope; without a table the head stays as it is.
struct rotation {
  const float* table;  // (pairs, 2), cosine and sine; or nullptr
  uint32_t pairs;
  bool neox;

  // Element i of a head x, which is a pointer or a normed_head. It needs fewer registers than of().
  template <class Head>
  __device__ float operator()(const Head& x, uint32_t i) const {
    if (!table || i >= 2 * pairs) return x[i];
    const uint32_t pair = neox ? i % pairs : i / 2;
    const bool second = neox ? i >= pairs : i % 2 != 0;
    const uint32_t other = neox ? (second ? i - pairs : i + pairs) : (i ^ 1u);
    const float a = x[i] * table[2 * pair], b = x[other] * table[2 * pair + 1];
    return second ? b + a : a - b;
  }

  // The same for several heads: element i is x[i] * cosine + x[other] * sine, or x[i] if not
  // `some`.
  struct turn {
    bool some;
    uint32_t other;
    float cosine, sine;
  };
  __device__ turn of(uint32_t i) const {
    if (!table || i >= 2 * pairs) return {false, i, 1, 0};
    const bool second = neox ? i >= pairs : i % 2 != 0;
    const uint32_t other = neox ? (second ? i - pairs : i + pairs) : (i ^ 1u);
    const uint32_t pair = neox ? smaller(i, other) : i / 2;
    const float sine = table[2 * pair + 1];
    return {true, other, table[2 * pair], second ? sine : -sine};
  }
};

// A head that is normed as it is read, as in rms_norm; without weights it stays as it is.
struct normed_head {
  const float *x, *weight;
  float factor;

  __device__ float operator[](uint32_t i) const {
    return weight ? x[i] * factor * weight[i] : x[i];
  }
};

// Units of a row: words, or blocks of 32 elements.
__device__ inline uint32_t units_of(uint32_t dtype, uint32_t head_dim) {
  return dtype == BITNET_DTYPE_F32   ? head_dim
         : dtype == BITNET_DTYPE_F16 ? (head_dim + 1) / 2
                                     : head_dim / 32;
}

template <class Head>
__device__ inline void put_q8_0(const Head& x, uint32_t from, uint32_t* out,
                                const rotation& rotated) {
  float largest = 0;
  for (uint32_t i = 0; i < 32; ++i) largest = larger(largest, fabsf(rotated(x, from + i)));
  const uint32_t bits = f32_to_f16(fminf(largest / 127.0f, 65504.0f));
  const float d = f16_to_f32(bits);
  const float inverse = d > 0 ? 1.0f / d : 0;
  const auto code = [&](uint32_t i) {
    const int q = quantised(rotated(x, from + i), inverse);
    return q < -127 ? -127 : q;
  };
  out[0] = bits;
  for (uint32_t w = 0; w < 8; ++w)
    out[1 + w] = packed4(code(4 * w), code(4 * w + 1), code(4 * w + 2), code(4 * w + 3));
}

template <class Head>
__device__ inline void put_q4_0(const Head& x, uint32_t from, uint32_t* out,
                                const rotation& rotated) {
  float extreme = 0;
  for (uint32_t i = 0; i < 32; ++i) {
    const float one = rotated(x, from + i);
    if (fabsf(one) > fabsf(extreme)) extreme = one;
  }
  const float step = fminf(fmaxf(extreme / -8.0f, -65504.0f), 65504.0f);
  const uint32_t bits = f32_to_f16(step);
  const float inverse = (bits & 0x7fffu) != 0 ? 1.0f / step : 0;
  const auto code = [&](uint32_t i) {
    // In this order NaN becomes 0.
    return static_cast<uint32_t>(fminf(larger(0.0f, rotated(x, from + i) * inverse + 8.5f), 15.0f));
  };
  out[0] = bits;
  for (uint32_t w = 0; w < 4; ++w) {
    uint32_t word = 0;
    for (uint32_t i = 0; i < 4; ++i)
      word |= (code(4 * w + i) | code(4 * w + i + 16) << 4) << (8 * i);
    out[1 + w] = word;
  }
}

template <class Head>
__device__ inline void put(uint32_t dtype, const Head& x, uint32_t head_dim, uint32_t unit,
                           uint32_t* row, const rotation& rotated) {
  if (dtype == BITNET_DTYPE_F32) {
    row[unit] = bits_of<uint32_t>(rotated(x, unit));
  } else if (dtype == BITNET_DTYPE_F16) {
    const uint32_t i = 2 * unit;
    const uint32_t high = i + 1 < head_dim ? f32_to_f16(rotated(x, i + 1)) : 0;
    row[unit] = f32_to_f16(rotated(x, i)) | high << 16;
  } else if (dtype == BITNET_DTYPE_Q8_0) {
    put_q8_0(x, 32 * unit, row + 9 * unit, rotated);
  } else {
    put_q4_0(x, 32 * unit, row + 5 * unit, rotated);
  }
}

}  // namespace bitnet::kernels

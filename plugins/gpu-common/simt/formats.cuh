#pragma once
// Sixteen consecutive elements of a row, for each format: piece p holds [16 p, 16 p + 16).

#include "common.cuh"

namespace bitnet::kernels {

__device__ inline float half_at(const uint32_t* words, uint32_t i) {
  return f16_to_f32(words[i / 2] >> (16 * (i % 2)) & 0xffffu);
}
__device__ inline float bf16_at(const uint32_t* words, uint32_t i) {
  return bits_of<float>(i % 2 ? words[i / 2] & 0xffff0000u : words[i / 2] << 16);
}

struct f32_row {
  static constexpr bool blocks = false;
  __device__ static void piece(const uint32_t* row, uint32_t p, float (&out)[16]) {
    for (uint32_t i = 0; i < 4; ++i) {
      const uint4 four = load4(row + 16 * p + 4 * i);
      out[4 * i] = bits_of<float>(four.x);
      out[4 * i + 1] = bits_of<float>(four.y);
      out[4 * i + 2] = bits_of<float>(four.z);
      out[4 * i + 3] = bits_of<float>(four.w);
    }
  }
  __device__ static float at(const uint32_t* row, uint32_t i) { return bits_of<float>(row[i]); }
};

struct f16_row {
  static constexpr bool blocks = false;
  __device__ static void piece(const uint32_t* row, uint32_t p, float (&out)[16]) {
    for (uint32_t side = 0; side < 2; ++side) {
      const uint4 words = load4(row + 8 * p + 4 * side);
      const uint32_t each[4] = {words.x, words.y, words.z, words.w};
      for (uint32_t i = 0; i < 4; ++i) {
        out[8 * side + 2 * i] = f16_to_f32(each[i] & 0xffffu);
        out[8 * side + 2 * i + 1] = f16_to_f32(each[i] >> 16);
      }
    }
  }
  __device__ static float at(const uint32_t* row, uint32_t i) { return half_at(row, i); }
};

struct bf16_row {
  static constexpr bool blocks = false;
  __device__ static void piece(const uint32_t* row, uint32_t p, float (&out)[16]) {
    for (uint32_t side = 0; side < 2; ++side) {
      const uint4 words = load4(row + 8 * p + 4 * side);
      const uint32_t each[4] = {words.x, words.y, words.z, words.w};
      for (uint32_t i = 0; i < 4; ++i) {
        out[8 * side + 2 * i] = bits_of<float>(each[i] << 16);
        out[8 * side + 2 * i + 1] = bits_of<float>(each[i] & 0xffff0000u);
      }
    }
  }
  __device__ static float at(const uint32_t* row, uint32_t i) { return bf16_at(row, i); }
};

// Formats of blocks: rows are whole pieces.
struct q8_0_row {
  static constexpr bool blocks = true;
  __device__ static void piece(const uint32_t* row, uint32_t p, float (&out)[16]) {
    const uint32_t* block = row + p / 2 * 9;
    const float d = half_at(block, 0);
    for (uint32_t w = 0; w < 4; ++w) {
      const uint32_t word = block[1 + p % 2 * 4 + w];
      for (uint32_t b = 0; b < 4; ++b)
        out[4 * w + b] = d * static_cast<float>(static_cast<int8_t>(word >> (8 * b) & 255u));
    }
  }
  __device__ static float at(const uint32_t* row, uint32_t i) {
    const uint32_t* block = row + i / 32 * 9;
    const uint32_t word = block[1 + i % 32 / 4];
    return half_at(block, 0) * static_cast<float>(static_cast<int8_t>(word >> (i % 4 * 8) & 255u));
  }
};

struct q4_0_row {
  static constexpr bool blocks = true;
  __device__ static void piece(const uint32_t* row, uint32_t p, float (&out)[16]) {
    const uint32_t* block = row + p / 2 * 5;
    const float d = half_at(block, 0);
    const uint32_t shift = p % 2 * 4;
    for (uint32_t i = 0; i < 16; ++i) {
      const uint32_t q = block[1 + i / 4] >> (8 * (i % 4) + shift) & 15u;
      out[i] = d * (static_cast<float>(q) - 8.0f);
    }
  }
  __device__ static float at(const uint32_t* row, uint32_t i) {
    const uint32_t* block = row + i / 32 * 5;
    const uint32_t q = block[1 + i % 16 / 4] >> (8 * (i % 4) + i % 32 / 16 * 4) & 15u;
    return half_at(block, 0) * (static_cast<float>(q) - 8.0f);
  }
};

struct q4_k_row {
  static constexpr bool blocks = true;
  __device__ static uint32_t scale_byte(const uint32_t* block, uint32_t i) {
    return block[1 + i / 4] >> (8 * (i % 4)) & 255u;
  }
  __device__ static void piece(const uint32_t* row, uint32_t p, float (&out)[16]) {
    const uint32_t* block = row + p / 16 * 36;
    const uint32_t j = p % 16 / 2;  // sub-block of 32
    uint32_t scale, minimum;
    if (j < 4) {
      scale = scale_byte(block, j) & 63u;
      minimum = scale_byte(block, j + 4) & 63u;
    } else {
      scale = (scale_byte(block, j + 4) & 15u) | (scale_byte(block, j - 4) >> 6) << 4;
      minimum = scale_byte(block, j + 4) >> 4 | (scale_byte(block, j) >> 6) << 4;
    }
    const float step = half_at(block, 0) * static_cast<float>(scale);
    const float off = half_at(block, 1) * static_cast<float>(minimum);
    const uint32_t* codes = block + 4 + 4 * (j / 2 * 2 + p % 2);
    for (uint32_t i = 0; i < 16; ++i) {
      const uint32_t q = codes[i / 4] >> (8 * (i % 4) + j % 2 * 4) & 15u;
      out[i] = step * static_cast<float>(q) - off;
    }
  }
};

struct q6_k_row {
  static constexpr bool blocks = true;
  __device__ static void piece(const uint32_t* row, uint32_t p, float (&out)[16]) {
    const uint32_t* block = row + p / 16 * 53;
    const uint32_t part = p % 16 / 8, quarter = p % 8 / 2, side = p % 2;  // of 128, 32 and 16
    const uint32_t* low = block + 4 * (4 * part + quarter % 2 * 2 + side);
    const uint32_t* high = block + 32 + 4 * (2 * part + side);
    const uint32_t scale = 8 * part + 2 * quarter + side;
    const uint32_t scale_bits = block[48 + scale / 4] >> (scale % 4 * 8) & 255u;
    const float step = half_at(block, 104) * static_cast<float>(static_cast<int8_t>(scale_bits));
    for (uint32_t i = 0; i < 16; ++i) {
      const uint32_t at = 8 * (i % 4);
      const uint32_t four = low[i / 4] >> (at + (quarter < 2 ? 0 : 4)) & 15u;
      const uint32_t two = high[i / 4] >> (at + 2 * quarter) & 3u;
      out[i] = step * (static_cast<float>(four | two << 4) - 32.0f);
    }
  }
};

// t in {-1, 0, 1}, without its scale. Rows are padded to whole pieces.
struct ternary2_row {
  static constexpr bool blocks = true;
  __device__ static void piece(const uint32_t* row, uint32_t p, float (&out)[16]) {
    const uint32_t* codes = row + p / 8 * 8 + p % 2 * 4;
    const uint32_t quarter = p % 8 / 2;
    for (uint32_t i = 0; i < 16; ++i) {
      const uint32_t code = codes[i / 4] >> (8 * (i % 4) + 6 - 2 * quarter) & 3u;
      out[i] = static_cast<float>(code) - 1.0f;
    }
  }
};

// The first n < 16 elements of a piece that the row ends in, then zeros. Formats of blocks have no
// such end.
template <class Row>
__device__ void ending(const uint32_t* row, uint32_t p, uint32_t n, float (&out)[16]) {
  if constexpr (!Row::blocks)
    for (uint32_t i = 0; i < 16; ++i) out[i] = i < n ? Row::at(row, 16 * p + i) : 0.0f;
}

// One of four sums takes every fourth product.
__device__ inline void add_products(const float (&a)[16], const float (&b)[16], float (&sums)[4]) {
  for (uint32_t i = 0; i < 16; ++i) sums[i % 4] += a[i] * b[i];
}

}  // namespace bitnet::kernels

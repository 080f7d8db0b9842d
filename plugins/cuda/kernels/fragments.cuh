#pragma once
// Tiles of tensor cores: 16 rows of a matrix by 8 tokens. Lane i has elements of rows i / 4 and
// i / 4 + 8 and of tokens i % 4 * 2 and the next, and brings words of the same two rows and of
// token i / 4. Which words of a row a lane brings is free, as long as it brings the same ones of
// the tokens.

#include "gpu-common/simt/ternary.cuh"

namespace bitnet::kernels {

static_assert(warp == 32, "fragments lie in the lanes as wave.cuh says for warps of 32");

// Adds the products of a tile, 32 elements each; device.cuh has what lies where.
__device__ inline void multiply_fragments(int (&c)[4], const uint32_t (&a)[4],
                                          const uint32_t (&b)[2]) {
  if (from_sm80()) {
    multiply_16x8x32(c, a, b);
  } else {
    for (uint32_t half = 0; half < 2; ++half) {
      multiply_8x8x16(c[0], c[1], a[2 * half], b[half]);
      multiply_8x8x16(c[2], c[3], a[2 * half + 1], b[half]);
    }
  }
}

// The same for unsigned bytes of a.
__device__ inline void multiply_unsigned_fragments(int (&c)[4], const uint32_t (&a)[4],
                                                   const uint32_t (&b)[2]) {
  if (from_sm80()) {
    multiply_unsigned_16x8x32(c, a, b);
  } else {
    for (uint32_t half = 0; half < 2; ++half) {
      multiply_unsigned_8x8x16(c[0], c[1], a[2 * half], b[half]);
      multiply_unsigned_8x8x16(c[2], c[3], a[2 * half + 1], b[half]);
    }
  }
}

// Of two words of two rows, the codes that lie `shift` bits up.
struct code_words {
  uint32_t upper[2], lower[2];  // rows i / 4 and i / 4 + 8
};
__device__ inline void codes_at(uint32_t shift, const code_words& from, uint32_t (&a)[4]) {
  a[0] = from.upper[0] >> shift & codes_mask;
  a[1] = from.lower[0] >> shift & codes_mask;
  a[2] = from.upper[1] >> shift & codes_mask;
  a[3] = from.lower[1] >> shift & codes_mask;
}
// Words 0 and 1, or 2 and 3.
__device__ inline uint2 half_of(const uint4& words, uint32_t half) {
  return half == 0 ? make_uint2(words.x, words.y) : make_uint2(words.z, words.w);
}

// A power of two by the bits of its exponent, 1 to 254. Factors are multiplied by one before they
// are rounded to 16 bits.
__device__ inline float power_of(uint32_t exponent) {
  return bits_of<float>(exponent << 23);
}

// Where element e of this lane's share lies in the tile.
__device__ inline uint32_t row_of(uint32_t e) {
  return lane() / 4 + e / 2 * 8;
}
__device__ inline uint32_t token_of(uint32_t e) {
  return lane() % 4 * 2 + e % 2;
}
// The same for thread i of a group, when each of them takes one element of a tile that lanes stored
// by four.
__device__ inline uint32_t row_of_stored(uint32_t i) {
  return i / 16 + i % 4 / 2 * 8;
}
__device__ inline uint32_t token_of_stored(uint32_t i) {
  return i / 4 % 4 * 2 + i % 2;
}

}  // namespace bitnet::kernels

#pragma once
// Products of small matrices by the matrix cores of a device: MFMA on CDNA, WMMA on RDNA 3 and 4.
// Kernels use them through what is here. BITNET_ROCM_MATRIX is the number of words of a row or a
// token that a lane brings to one product:
//   1  v_mfma_i32_16x16x16_i8, waves of 64 lanes
//   2  v_mfma_i32_16x16x32_i8, the same on gfx940 and newer
//   2  v_wmma_i32_16x16x16_iu8 of gfx12, waves of 32 lanes
//   4  v_wmma_i32_16x16x16_iu8 of gfx11, waves of 32 lanes
//
// Source  AMD, "CDNA Instruction Set Architecture" 1 to 3, "RDNA3 Instruction Set Architecture" and
//         "RDNA4 Instruction Set Architecture", matrix arithmetic; AMD's matrix instruction
//         calculator prints the same layouts.

#include "gpu-common/simt/common.cuh"
#include "ternary_matrix.hpp"

namespace bitnet::kernels {

constexpr uint32_t matrix_words = BITNET_ROCM_MATRIX;
// So many lanes share a row, each with other words of it. On gfx11 both halves of a wave bring the
// same.
constexpr uint32_t matrix_parts = matrix_words == 4 ? 1 : warp / matrix_tile;
constexpr uint32_t matrix_sums = matrix_tile * matrix_tile / warp;  // of a lane
static_assert(warp == 32 ? matrix_words == 2 || matrix_words == 4 : matrix_words <= 2,
              "of these waves the layouts are");

// The row or token of a tile whose words this lane brings, and which of its words: a product adds
// up over all of them, so that any share does as long as rows and tokens have the same.
__device__ inline uint32_t place_of_lane() {
  return lane() % matrix_tile;
}
__device__ inline uint32_t part_of_lane() {
  return matrix_parts == 1 ? 0 : lane() / matrix_tile;
}
// Sum e of a lane is of the row place_of_lane() and of this token.
__device__ inline uint32_t token_of_sum(uint32_t e) {
  return matrix_words == 4 ? 2 * e + lane() / matrix_tile : lane() / matrix_tile * matrix_sums + e;
}

// Adds the products of signed bytes: of the token and of the row whose words this lane brings. All
// lanes of a wave call it; those without work bring zeros.
__device__ inline void multiply_tile(int (&sums)[matrix_sums],
                                     const uint32_t (&token)[matrix_words],
                                     const uint32_t (&row)[matrix_words]) {
#ifdef BITNET_SIMT
  simt_multiply_16x16(sums, token, row);
#else
  using sum_vector = int __attribute__((ext_vector_type(matrix_sums)));
  sum_vector all;
  memcpy(&all, sums, sizeof all);
#if BITNET_ROCM_MATRIX == 1
  all = __builtin_amdgcn_mfma_i32_16x16x16i8(static_cast<int>(token[0]), static_cast<int>(row[0]),
                                             all, 0, 0, 0);
#elif BITNET_ROCM_MATRIX == 2 && BITNET_WARP_LANES == 64
  const auto two = [](const uint32_t(&words)[2]) {
    return static_cast<long>(words[0] | uint64_t{words[1]} << 32);
  };
  all = __builtin_amdgcn_mfma_i32_16x16x32_i8(two(token), two(row), all, 0, 0, 0);
#else
  using word_vector = int __attribute__((ext_vector_type(matrix_words)));
  word_vector of_token, of_row;
  memcpy(&of_token, token, sizeof of_token);
  memcpy(&of_row, row, sizeof of_row);
  // Both with a sign; sums wrap, as all others here do.
#if BITNET_ROCM_MATRIX == 2
  all = __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32_gfx12(true, of_token, true, of_row, all, false);
#else
  all = __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32(true, of_token, true, of_row, all, false);
#endif
#endif
  memcpy(sums, &all, sizeof all);
#endif
}

}  // namespace bitnet::kernels

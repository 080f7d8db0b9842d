// Matrices of formats that are not ternary, and the rows of embeddings.

#include "dense.cuh"

using namespace bitnet::kernels;
namespace gpu = bitnet::gpu;

namespace {

template <class Row>
__device__ void gather_piece(const uint32_t* row, uint32_t i, uint32_t left, float (&out)[16]) {
  if (left < 16 && !Row::blocks)
    ending<Row>(row, i, left, out);
  else
    Row::piece(row, i, out);
}

__device__ void piece_of(uint32_t format, const uint32_t* row, uint32_t i, uint32_t left,
                         float (&out)[16]) {
  switch (format) {
    case BITNET_FORMAT_F32:
      return gather_piece<f32_row>(row, i, left, out);
    case BITNET_FORMAT_F16:
      return gather_piece<f16_row>(row, i, left, out);
    case BITNET_FORMAT_BF16:
      return gather_piece<bf16_row>(row, i, left, out);
    case BITNET_FORMAT_Q8_0:
      return gather_piece<q8_0_row>(row, i, left, out);
    case BITNET_FORMAT_Q4_0:
      return gather_piece<q4_0_row>(row, i, left, out);
    case BITNET_FORMAT_Q4_K:
      return gather_piece<q4_k_row>(row, i, left, out);
    case BITNET_FORMAT_Q6_K:
      return gather_piece<q6_k_row>(row, i, left, out);
    default:
      return gather_piece<ternary2_row>(row, i, left, out);
  }
}

}  // namespace

// Constant 1: format of the matrix. A thread takes sixteen elements.
BITNET_KERNEL(embed_gather) {
  const auto p = params_of<gpu::embed_gather_params>(l);
  const auto* tokens = memory_of<const uint32_t>(l, 1);
  const auto* matrix = memory_of<const uint32_t>(l, 2);
  const auto* scales = memory_of<const float>(l, 3);
  auto* y = memory_of<float>(l, 4);
  const bool scaled = l.constants[1] == BITNET_FORMAT_TERNARY2;
  each_y(rows_of(l), [&](uint32_t t) {
    const uint32_t token = tokens[t];
    if (token < p.first_row || token - p.first_row >= p.n_rows) return;
    const uint32_t* row = matrix + uint64_t{token - p.first_row} * p.row_words;
    float* out = y + uint64_t{t} * p.k;
    each_x((p.k + 15) / 16, [&](uint32_t i) {
      const uint32_t left = p.k - 16 * i;
      float values[16];
      piece_of(l.constants[1], row, i, left, values);
      for (uint32_t j = 0; j < 16; ++j) {
        if (j >= left) continue;
        const uint64_t at = uint64_t{token} * p.k + 16 * i + j;
        if (scaled) values[j] *= scales[p.scale_group ? at / p.scale_group : 0];
        out[16 * i + j] = values[j];
      }
    });
  });
}

namespace {

// A warp takes a row of the matrix, and `Tokens` tokens together.
template <class Row, uint32_t Tokens>
__device__ void linear(const launch& l) {
  const auto p = params_of<gpu::linear_dense_params>(l);
  const auto* x = memory_of<const uint32_t>(l, 1);
  const auto* matrix = memory_of<const uint32_t>(l, 2);
  auto* y = memory_of<float>(l, 3);
  const uint32_t rows = rows_of(l);
  each_group((uint64_t{p.n_rows} + warps - 1) / warps, [&](uint32_t group) {
    const uint32_t r = group * warps + warp_of_group();
    if (r >= p.n_rows) return;  // all of a warp
    const uint32_t* row = matrix + uint64_t{r} * p.row_words;
    for (uint64_t first = uint64_t{blockIdx.y} * Tokens; first < rows;
         first += uint64_t{gridDim.y} * Tokens) {
      const float sum = row_products<Row, Tokens>(row, x, p.k, first, rows);
      constexpr uint32_t lanes_each = warp / Tokens;
      const uint64_t t = first + lane() / lanes_each;
      if (lane() % lanes_each == 0 && t < rows) y[t * p.m + p.first_row + r] = sum;
    }
  });
}

}  // namespace

// Of four tokens, on a multiprocessor: plugins/cuda/CMakeLists.txt has fewer for some compilers.
#ifndef BITNET_DENSE_GROUPS
#define BITNET_DENSE_GROUPS 4
#endif
#define BITNET_LINEAR_DENSE(format)                                  \
  BITNET_KERNEL(linear_dense_##format##_1) {                         \
    linear<format##_row, 1>(l);                                      \
  }                                                                  \
  BITNET_KERNEL_OF(linear_dense_##format##_4, BITNET_DENSE_GROUPS) { \
    linear<format##_row, 4>(l);                                      \
  }
BITNET_LINEAR_DENSE(f32)
BITNET_LINEAR_DENSE(f16)
BITNET_LINEAR_DENSE(bf16)
BITNET_LINEAR_DENSE(q8_0)
BITNET_LINEAR_DENSE(q4_0)
BITNET_LINEAR_DENSE(q4_k)
BITNET_LINEAR_DENSE(q6_k)

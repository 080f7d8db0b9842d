// linear_dense for several tokens on tensor cores: activations are rounded to the matrix's format,
// in programs that permit it.

#include <cfloat>

#include "fragments.cuh"
#include "gpu-common/simt/group.cuh"
#include "tiles.hpp"

using namespace bitnet::kernels;
namespace gpu = bitnet::gpu;

namespace {

struct f16_factors {
  // Returns the biased exponent of the power of two that a row is multiplied by; `largest` is its
  // largest finite magnitude.
  __device__ static uint32_t exponent_for(float largest) {
    const uint32_t found = bits_of<uint32_t>(largest) >> 23, wanted = 127 + 14;
    return smaller(127 + wanted - found, 127 + 126);
  }
  __device__ static uint32_t rounded(float x) { return f32_to_f16(x); }
  __device__ static void multiply(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
    multiply_f16(c, a, b);
  }
};

struct bf16_factors {
  __device__ static uint32_t exponent_for(float largest) {
    return largest >= power_of(254) ? 126 : 127;
  }
  __device__ static uint32_t rounded(float x) {
    const auto bits = bits_of<uint32_t>(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return bits >> 16 | 0x40u;  // NaN
    return (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
  }
  __device__ static void multiply(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
    multiply_bf16(c, a, b);
  }
};

template <class Kind>
__device__ void round_row(const float* x, uint32_t k, uint32_t* out) {
  float largest = 0;
  for (uint32_t i = threadIdx.x; i < k; i += threads) {
    const float size = fabsf(x[i]);
    if (size <= FLT_MAX) largest = larger(largest, size);
  }
  const uint32_t exponent = Kind::exponent_for(group_max(largest));
  const float power = power_of(exponent);
  const auto element = [&](uint32_t i) { return i < k ? Kind::rounded(x[i] * power) : 0; };
  const auto words = static_cast<uint32_t>(gpu::rounded_row_words(k)) - 4;
  for (uint32_t w = threadIdx.x; w < words; w += threads)
    out[w] = element(2 * w) | element(2 * w + 1) << 16;
  if (threadIdx.x == 0) out[words] = bits_of<uint32_t>(power_of(2 * 127 - exponent));
}

}  // namespace

BITNET_KERNEL(round_rows) {
  const auto p = params_of<gpu::round_rows_params>(l);
  const auto* x = memory_of<const float>(l, 1);
  auto* out = memory_of<uint32_t>(l, 2);
  each_row(rows_of(l), [&](uint64_t t) {
    uint32_t* row = out + t * gpu::rounded_row_words(p.k);
    if (l.constants[3] == BITNET_FORMAT_BF16)
      round_row<bf16_factors>(x + t * p.k, p.k, row);
    else
      round_row<f16_factors>(x + t * p.k, p.k, row);
  });
}

namespace {

// The part of its tokens that a group holds at a time: 64 elements of each, by 16 bytes.
constexpr uint32_t of_stage = 8;
// Their place in memory. The memory serves eight lanes at a time, which read four of each of two
// tokens; with this order these are in eight different columns of banks.
__device__ uint32_t place(uint32_t token, uint32_t i) {
  return token * of_stage + (i ^ token % 2 * 4);
}

// 16 bytes of a row of the matrix, zeros past its end.
__device__ uint4 piece_of(const uint32_t* row, uint32_t i, uint32_t words) {
  if (4 * i + 4 <= words) return load4(row + 4 * i);
  const auto word = [&](uint32_t w) { return w < words ? row[w] : 0; };
  return make_uint4(word(4 * i), word(4 * i + 1), word(4 * i + 2), 0);
}

// 16 bytes of the two rows of a lane in each of `Tiles` tiles.
template <uint32_t Tiles>
struct row_pieces {
  uint4 upper[Tiles], lower[Tiles];

  __device__ void read(const uint32_t* const (&row)[2 * Tiles], uint32_t i, uint32_t words) {
    for (uint32_t n = 0; n < Tiles; ++n) {
      upper[n] = piece_of(row[2 * n], i, words);
      lower[n] = piece_of(row[2 * n + 1], i, words);
    }
  }
  __device__ void fragment(uint32_t n, uint32_t half, uint32_t (&a)[4]) const {
    const uint2 high = half_of(upper[n], half), low = half_of(lower[n], half);
    a[0] = high.x;
    a[1] = low.x;
    a[2] = high.y;
    a[3] = low.y;
  }
};

template <class Kind, tile_form Form>
struct rounded_product {
  // Tiles of a warp: of 16 rows, and of 8 tokens, which are those of its group.
  static constexpr uint32_t row_tiles = Form.rows / (16 * warps), token_tiles = Form.tokens / 8,
                            stage_size = Form.tokens * of_stage;
  static_assert(Form.rows == 16 * warps * row_tiles && Form.tokens == 8 * token_tiles &&
                Form.shared_bytes == 2 * stage_size * sizeof(uint4));

  gpu::linear_dense_rounded_params p;
  const uint32_t *x, *matrix;
  float* y;
  uint32_t tokens, stride;  // words of a rounded row

  __device__ explicit rounded_product(const launch& l)
      : p(params_of<gpu::linear_dense_rounded_params>(l)),
        x(memory_of<const uint32_t>(l, 1)),
        matrix(memory_of<const uint32_t>(l, 2)),
        y(memory_of<float>(l, 3)),
        tokens(rows_of(l)),
        stride(static_cast<uint32_t>(gpu::rounded_row_words(p.k))) {}

  // Places past the end repeat the last one.
  __device__ const uint32_t* token(uint64_t t) const {
    return x + (t < tokens ? t : tokens - 1) * stride;
  }

  __device__ void copy_stage(uint64_t first, uint32_t stage, uint4* to) const {
    BITNET_NO_UNROLL
    for (uint32_t i = threadIdx.x; i < stage_size; i += threads) {
      const auto* from = reinterpret_cast<const uint4*>(token(first + i / of_stage));
      copy_ahead(to + place(i / of_stage, i % of_stage), from + stage * of_stage + i % of_stage);
    }
  }

  // All of a row, 64 elements at a time: while they are multiplied, the next ones are on their way.
  __device__ void add_all(uint32_t r, uint64_t first, uint4* stages,
                          float (&sums)[token_tiles][row_tiles][4]) const {
    const uint32_t n = (p.k + 63) / 64, word = lane() % 4;
    const uint32_t* row[2 * row_tiles];
    for (uint32_t i = 0; i < 2 * row_tiles; ++i)
      row[i] = matrix + uint64_t{smaller(r + 8 * i + lane() / 4, p.n_rows - 1)} * p.row_words;
    row_pieces<row_tiles> next;
    next.read(row, word, p.row_words);
    __syncthreads();  // all threads have read the previous content
    copy_stage(first, 0, stages);
    for (uint32_t stage = 0; stage < n; ++stage) {
      wait_for_copies();
      __syncthreads();  // all have copied this one, and no thread reads the previous one
      if (stage + 1 < n) copy_stage(first, stage + 1, stages + (stage + 1) % 2 * stage_size);
      for (uint32_t part = 0; part < 2; ++part) {
        const row_pieces<row_tiles> pieces = next;
        const uint32_t i = 4 * part + word;
        next.read(row, stage * of_stage + i + 4, p.row_words);
        const uint4* here = stages + stage % 2 * stage_size;
        for (uint32_t t = 0; t < token_tiles; ++t) {
          const uint4 values = here[place(8 * t + lane() / 4, i)];
          for (uint32_t half = 0; half < 2; ++half) {
            const uint2 pair = half_of(values, half);
            const uint32_t b[2] = {pair.x, pair.y};
            for (uint32_t tile = 0; tile < row_tiles; ++tile) {
              uint32_t a[4];
              pieces.fragment(tile, half, a);
              Kind::multiply(sums[t][tile], a, b);
            }
          }
        }
      }
    }
  }

  __device__ void put(uint32_t r, uint64_t first,
                      const float (&sums)[token_tiles][row_tiles][4]) const {
    BITNET_UNROLL
    for (uint32_t i = 0; i < token_tiles * row_tiles * 4; ++i) {
      const uint32_t t = i / (row_tiles * 4), tile = i / 4 % row_tiles, e = i % 4;
      const uint64_t at = first + 8 * t + token_of(e);
      const uint32_t row = r + 16 * tile + row_of(e);
      if (at >= tokens || row >= p.n_rows) continue;
      y[at * p.m + p.first_row + row] =
          sums[t][tile][e] * bits_of<float>(x[at * stride + stride - 4]);
    }
  }

  __device__ void compute() const {
    auto* stages = static_cast<uint4*>(shared_memory());
    each_group((uint64_t{p.n_rows} + Form.rows - 1) / Form.rows, [&](uint32_t unit) {
      const uint32_t r = unit * Form.rows + warp_of_group() * row_tiles * 16;
      for (uint64_t first = uint64_t{blockIdx.y} * Form.tokens; first < tokens;
           first += uint64_t{gridDim.y} * Form.tokens) {
        float sums[token_tiles][row_tiles][4] = {};
        add_all(r, first, stages, sums);
        put(r, first, sums);
      }
    });
  }
};

}  // namespace

#define BITNET_ROUNDED(format)                                    \
  BITNET_KERNEL(linear_dense_rounded_##format##_few) {            \
    rounded_product<format##_factors, few_rounded>(l).compute();  \
  }                                                               \
  BITNET_KERNEL_OF(linear_dense_rounded_##format##_many, 2) {     \
    rounded_product<format##_factors, many_rounded>(l).compute(); \
  }
BITNET_ROUNDED(f16)
BITNET_ROUNDED(bf16)

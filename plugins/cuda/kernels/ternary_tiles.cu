// linear_ternary for several tokens, bit for bit, on tensor cores: matrices with one scale.

#include "fragments.cuh"
#include "tiles.hpp"

using namespace bitnet::kernels;
namespace gpu = bitnet::gpu;

namespace {

// Half a block of the two rows of a lane in each of `Tiles` tiles, which is 16 bytes of a row;
// zeros past the end. Four lanes read four adjacent halves.
template <uint32_t Tiles>
struct half_blocks {
  uint4 upper[Tiles], lower[Tiles];

  __device__ void read(const uint4* const (&row)[2 * Tiles], uint32_t i, uint32_t halves) {
    for (uint32_t n = 0; n < Tiles; ++n) {
      upper[n] = i < halves ? row[2 * n][i] : make_uint4(0, 0, 0, 0);
      lower[n] = i < halves ? row[2 * n + 1][i] : make_uint4(0, 0, 0, 0);
    }
  }
  __device__ void fragment(uint32_t n, uint32_t half, uint32_t shift, uint32_t (&a)[4]) const {
    const uint2 high = half_of(upper[n], half), low = half_of(lower[n], half);
    codes_at(shift, {{high.x, high.y}, {low.x, low.y}}, a);
  }
};
template <uint32_t Tiles>
__device__ void find_rows(const ternary_product& product, uint32_t r,
                          const uint4* (&row)[2 * Tiles]) {
  for (uint32_t n = 0; n < 2 * Tiles; ++n)
    row[n] = reinterpret_cast<const uint4*>(product.row(r + 8 * n + lane() / 4));
}

// Adds this warp's share of a row, every fourth pair of blocks, for 16 rows and 8 * Tiles tokens
// from `first` on.
template <uint32_t Tiles>
__device__ void add_share(const ternary_product& product, const uint4* const (&row)[2],
                          uint64_t first, int (&sums)[Tiles][4]) {
  constexpr uint32_t step = 4 * warps, one[4] = {ones, ones, ones, ones};
  const uint32_t halves = product.p.row_words / 4;
  const uint4* q[Tiles];
  for (uint32_t t = 0; t < Tiles; ++t)
    q[t] = reinterpret_cast<const uint4*>(product.activations_of(first + 8 * t + lane() / 4));
  int sum_of_activations[Tiles][4] = {};
  uint32_t i = warp_of_group() * 4 + lane() % 4;
  half_blocks<1> next;
  next.read(row, i, halves);
  meet_lanes();  // in the previous tokens lanes stored different parts
  for (uint32_t at = warp_of_group() * 4; at < halves; at += step, i += step) {
    const half_blocks<1> codes = next;
    next.read(row, i + step, halves);
    for (uint32_t quarter = 0; quarter < 4; ++quarter) {
      uint4 values[Tiles];
      for (uint32_t t = 0; t < Tiles; ++t)
        values[t] = i < halves ? q[t][i / 2 * 8 + quarter * 2 + i % 2] : make_uint4(0, 0, 0, 0);
      for (uint32_t half = 0; half < 2; ++half) {
        uint32_t a[4];
        codes.fragment(0, half, 6 - 2 * quarter, a);
        for (uint32_t t = 0; t < Tiles; ++t) {
          const uint2 pair = half_of(values[t], half);
          const uint32_t b[2] = {pair.x, pair.y};
          multiply_fragments(sum_of_activations[t], one, b);
          multiply_fragments(sums[t], a, b);
        }
      }
    }
  }
  BITNET_UNROLL
  for (uint32_t e = 0; e < 4 * Tiles; ++e) sums[e / 4][e % 4] -= sum_of_activations[e / 4][e % 4];
}

// The warps of a group divide the elements of 16 rows among them. Each thread adds up their four
// sums for one element of a tile.
template <uint32_t Tiles>
__device__ void few(const ternary_product& product, uint32_t r, uint64_t first) {
  const uint4* row[2];
  find_rows<1>(product, r, row);
  int sums[Tiles][4] = {};
  add_share<Tiles>(product, row, first, sums);
  auto* shared = static_cast<int*>(shared_memory());
  __syncthreads();  // all threads have read the previous content
  BITNET_UNROLL
  for (uint32_t e = 0; e < 4 * Tiles; ++e)
    shared[(warp_of_group() * Tiles + e / 4) * threads + lane() * 4 + e % 4] = sums[e / 4][e % 4];
  __syncthreads();
  for (uint32_t t = 0; t < Tiles; ++t) {
    int sum = 0;
    for (uint32_t w = 0; w < warps; ++w) sum += shared[(w * Tiles + t) * threads + threadIdx.x];
    product.put_sum(first + 8 * t + token_of_stored(threadIdx.x), r + row_of_stored(threadIdx.x),
                    sum);
  }
}

}  // namespace

// A group takes 16 rows of the matrix and 16 tokens.
BITNET_KERNEL(linear_ternary_few) {
  const ternary_product product = ternary_product_of(l);
  constexpr tile_form form = few_tokens;
  static_assert(form.shared_bytes == warps * form.rows * form.tokens * sizeof(int));
  each_group((uint64_t{product.p.n_rows} + form.rows - 1) / form.rows, [&](uint32_t unit) {
    for (uint64_t first = uint64_t{blockIdx.y} * form.tokens; first < product.tokens;
         first += uint64_t{gridDim.y} * form.tokens) {
      if (product.tokens - first <= 8)
        few<1>(product, unit * form.rows, first);
      else
        few<2>(product, unit * form.rows, first);
    }
  });
}

namespace {

// Tiles of a warp: of 16 rows, and of 8 tokens, which are those of its group.
constexpr uint32_t row_tiles = 4, token_tiles = many_tokens.tokens / 8;
static_assert(token_tiles == warps && many_tokens.rows == warps * row_tiles * 16);

// Two blocks of the group's tokens, by 16 bytes.
constexpr uint32_t of_stage = 16, stage_size = many_tokens.tokens * of_stage;
// Their place in memory. The memory serves eight lanes at a time, which read two tokens and two
// halves of two blocks; with this order these are in eight different columns of banks.
__device__ uint32_t place(uint32_t token, uint32_t i) {
  return token * of_stage + (i ^ (i / 8 * 2 + token % 2 * 4));
}

// Begins to copy two blocks of the group's tokens.
__device__ void copy_stage(const ternary_product& product, uint64_t first, uint32_t stage,
                           uint4* to) {
  for (uint32_t i = threadIdx.x; i < stage_size; i += threads) {
    const uint32_t token = i / of_stage, from = stage * of_stage + i % of_stage;
    if (from < product.stride / 4)
      copy_ahead(to + place(token, i % of_stage),
                 reinterpret_cast<const uint4*>(product.activations_of(first + token)) + from);
  }
}

struct many_sums {
  int of[token_tiles][row_tiles][4];
  int sum_of_activations[4];  // of the tokens of one tile, which is this warp's
};

// Adds two blocks. `one`: zeros for lanes past the end, where nothing was copied.
__device__ void add_stage(const half_blocks<row_tiles>& codes, const uint4* stage,
                          const uint32_t (&one)[4], many_sums& sums) {
  const uint32_t word = lane() % 4, token = lane() / 4;
  for (uint32_t quarter = 0; quarter < 4; ++quarter) {
    const uint32_t i = word / 2 * 8 + quarter * 2 + word % 2;
    uint4 values[token_tiles];
    for (uint32_t t = 0; t < token_tiles; ++t) values[t] = stage[place(8 * t + token, i)];
    const uint4 own = stage[place(8 * warp_of_group() + token, i)];
    for (uint32_t half = 0; half < 2; ++half) {
      const uint2 pair = half_of(own, half);
      const uint32_t counted[2] = {pair.x, pair.y};
      multiply_fragments(sums.sum_of_activations, one, counted);
      for (uint32_t n = 0; n < row_tiles; ++n) {
        uint32_t a[4];
        codes.fragment(n, half, 6 - 2 * quarter, a);
        for (uint32_t t = 0; t < token_tiles; ++t) {
          const uint2 each = half_of(values[t], half);
          const uint32_t b[2] = {each.x, each.y};
          multiply_fragments(sums.of[t][n], a, b);
        }
      }
    }
  }
}

// All of a row, two blocks at a time: while they are multiplied, the next ones are on their way.
__device__ void add_all(const ternary_product& product, const uint4* const (&row)[2 * row_tiles],
                        uint64_t first, uint4* stages, many_sums& sums) {
  const uint32_t halves = product.p.row_words / 4, n = (halves + 3) / 4;
  half_blocks<row_tiles> next;
  next.read(row, lane() % 4, halves);
  copy_stage(product, first, 0, stages);
  for (uint32_t stage = 0; stage < n; ++stage) {
    wait_for_copies();
    __syncthreads();  // all have copied this one, and are through with the one before
    if (stage + 1 < n) copy_stage(product, first, stage + 1, stages + (stage + 1) % 2 * stage_size);
    const uint32_t i = stage * 4 + lane() % 4;
    const half_blocks<row_tiles> codes = next;
    next.read(row, i + 4, halves);
    const uint32_t each = i < halves ? ones : 0;
    const uint32_t one[4] = {each, each, each, each};
    add_stage(codes, stages + stage % 2 * stage_size, one, sums);
  }
}

}  // namespace

// A group takes 256 rows of the matrix and 32 tokens, whose activations its warps share.
BITNET_KERNEL_OF(linear_ternary_many, 2) {
  const ternary_product product = ternary_product_of(l);
  constexpr tile_form form = many_tokens;
  auto* stages = static_cast<uint4*>(shared_memory());
  auto* sum_of_activations = reinterpret_cast<int*>(stages + 2 * stage_size);
  static_assert(form.shared_bytes == 2 * stage_size * sizeof(uint4) + form.tokens * sizeof(int));
  each_group((uint64_t{product.p.n_rows} + form.rows - 1) / form.rows, [&](uint32_t unit) {
    const uint32_t r = unit * form.rows + warp_of_group() * row_tiles * 16;
    const uint4* row[2 * row_tiles];
    find_rows<row_tiles>(product, r, row);
    for (uint64_t first = uint64_t{blockIdx.y} * form.tokens; first < product.tokens;
         first += uint64_t{gridDim.y} * form.tokens) {
      many_sums sums = {};
      add_all(product, row, first, stages, sums);
      if (lane() < 4)  // all rows of that tile are the same
        for (uint32_t e = 0; e < 2; ++e)
          sum_of_activations[8 * warp_of_group() + token_of(e)] = sums.sum_of_activations[e];
      __syncthreads();
      BITNET_UNROLL
      for (uint32_t i = 0; i < token_tiles * row_tiles * 4; ++i) {
        const uint32_t t = i / (row_tiles * 4), n = i / 4 % row_tiles, e = i % 4;
        const uint32_t token = 8 * t + token_of(e);
        product.put_sum(first + token, r + 16 * n + row_of(e),
                        sums.of[t][n][e] - sum_of_activations[token]);
      }
    }
  });
}

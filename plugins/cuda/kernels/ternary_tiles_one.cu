// Products of one token on tensor cores, bit for bit: matrices with one scale. Each of the eight
// columns of a tile is the token. Codes stay where they are in their bytes: each quarter of a block
// has sums of its own, which are shifted at the end.

#include "fragments.cuh"
#include "gpu-common/simt/quantised_row.cuh"
#include "tiles.hpp"

using namespace bitnet::kernels;
namespace gpu = bitnet::gpu;

namespace {

struct code_matrix {
  const uint32_t* words;
  uint32_t row_words, n_rows;

  // Past the end returns the last row, for which the caller stores nothing.
  __device__ const uint4* row(uint32_t r) const {
    return reinterpret_cast<const uint4*>(words + uint64_t{smaller(r, n_rows - 1)} * row_words);
  }
  __device__ uint32_t halves() const { return row_words / 4; }  // of blocks, in a row
};

// Half a block of the two rows of a lane in each of `Tiles` tiles.
template <uint32_t Tiles>
struct lane_codes {
  uint4 of_row[2 * Tiles];

  __device__ void read(const uint4* const (&row)[2 * Tiles], uint32_t i) {
    BITNET_UNROLL
    for (uint32_t n = 0; n < 2 * Tiles; ++n) of_row[n] = row[n][i];
  }
};

// Sums of each tile and each quarter of a block.
template <uint32_t Tiles>
struct tile_sums {
  int quarters[Tiles][4][4] = {};

  // `mask` is 0 for lanes past the end of the row.
  __device__ void add(const lane_codes<Tiles>& codes, const uint4* q, uint32_t i, uint32_t mask) {
    BITNET_UNROLL
    for (uint32_t quarter = 0; quarter < 4; ++quarter) {
      const uint4 values = q[i / 2 * 8 + quarter * 2 + i % 2];
      const uint32_t quarter_mask = mask << (6 - 2 * quarter);
      BITNET_UNROLL
      for (uint32_t half = 0; half < 2; ++half) {
        const uint2 pair = half_of(values, half);
        const uint32_t b[2] = {pair.x, pair.y};
        BITNET_UNROLL
        for (uint32_t n = 0; n < Tiles; ++n) {
          const uint2 upper = half_of(codes.of_row[2 * n], half);
          const uint2 lower = half_of(codes.of_row[2 * n + 1], half);
          const uint32_t a[4] = {upper.x & quarter_mask, lower.x & quarter_mask,
                                 upper.y & quarter_mask, lower.y & quarter_mask};
          multiply_unsigned_fragments(quarters[n][quarter], a, b);
        }
      }
    }
  }
  // The sum of row lane() / 4 of tile n, or of the row 8 further if `lower` is 1.
  __device__ int row(uint32_t n, uint32_t lower) const {
    const int(&s)[4][4] = quarters[n];
    return (s[0][2 * lower] >> 6) + (s[1][2 * lower] >> 4) + (s[2][2 * lower] >> 2) +
           s[3][2 * lower];
  }
};

// This warp's share of the sum of the token's activations. The warps subtract their shares because
// codes are one larger than weights.
__device__ int share_of_activations(const uint4* q, uint32_t halves) {
  int sum[1] = {};
  for (uint32_t i = threadIdx.x; i < 4 * halves; i += threads) sum[0] = sum16(q[i], sum[0]);
  return sum_of_lanes(sum);
}

// Computes this warp's share of 16 * Tiles rows from r on: every fourth pair of blocks. Stores
// 16 * Tiles sums at `to`, in shared memory.
template <uint32_t Tiles>
__device__ void put_share(const code_matrix& matrix, uint32_t r, const uint4* q,
                          int activation_share, int* to) {
  constexpr uint32_t step = 4 * warps;
  const uint32_t halves = matrix.halves();
  const uint4* row[2 * Tiles];
  BITNET_UNROLL
  for (uint32_t n = 0; n < 2 * Tiles; ++n) row[n] = matrix.row(r + 8 * n + lane() / 4);
  tile_sums<Tiles> sums;
  lane_codes<Tiles> next;
  uint32_t i = warp_of_group() * 4 + lane() % 4;
  next.read(row, i < halves ? i : 0);
  for (uint32_t at = warp_of_group() * 4; at < halves; at += step, i += step) {
    const lane_codes<Tiles> codes = next;
    const uint32_t next_half = i + step;
    if (at + step < halves) next.read(row, next_half < halves ? next_half : 0);
    if (at + 4 <= halves)
      sums.add(codes, q, i, codes_mask);
    else
      sums.add(codes, q, i < halves ? i : 0, i < halves ? codes_mask : 0);
  }
  BITNET_UNROLL
  for (uint32_t n = 0; n < 2 * Tiles; ++n) {
    // The four lanes of a row have the same sum.
    const int sum = sums.row(n / 2, n % 2) - activation_share;
    if (lane() % 4 == 0) to[8 * n + lane() / 4] = sum;
  }
}
// The sum of row i, of `rows` rows whose shares the warps have stored.
__device__ int sum_of_warps(const int* shares, uint32_t rows, uint32_t i) {
  int sum = 0;
  for (uint32_t w = 0; w < warps; ++w) sum += shares[w * rows + i];
  return sum;
}

__device__ void fetch_ahead_of_one_product(const launch& l, const group_of_launch& group) {
  fetch_rows_ahead<gpu::linear_ternary_params>(l, group, one_product.rows);
}

}  // namespace

// A group takes 16 rows; its warps divide the elements of the rows among them.
BITNET_KERNEL_JOINED(linear_ternary_tiles_one, 4, fetch_ahead_of_one_product) {
  constexpr tile_form form = one_product;
  static_assert(form.shared_bytes == warps * form.rows * sizeof(int));
  const ternary_product product = ternary_product_of(l);
  const code_matrix matrix = {product.matrix, product.p.row_words, product.p.n_rows};
  auto* shares = static_cast<int*>(shared_memory());
  each_y(product.tokens, [&](uint32_t t) {
    const auto* q = reinterpret_cast<const uint4*>(product.activations_of(t));
    const int activation_share = share_of_activations(q, matrix.halves());
    each_group(group, (uint64_t{product.p.n_rows} + form.rows - 1) / form.rows, [&](uint32_t unit) {
      __syncthreads();  // all threads have read the previous sums
      put_share<form.rows / 16>(matrix, unit * form.rows, q, activation_share,
                                shares + warp_of_group() * form.rows);
      __syncthreads();
      if (threadIdx.x < form.rows)
        product.put_sum(t, unit * form.rows + threadIdx.x,
                        sum_of_warps(shares, form.rows, threadIdx.x));
    });
  });
}

namespace {

// Units of 32 rows that a group takes. They are adjacent, so that one request covers their bytes.
struct unit_range {
  uint32_t first, last;
};
__device__ uint32_t units_of_each(const group_of_launch& group, uint32_t n_rows) {
  return (n_rows - 1) / one_quantised.rows / group.count + 1;
}
__device__ unit_range units_of(const group_of_launch& group, uint32_t n_rows) {
  const uint32_t all = (n_rows - 1) / one_quantised.rows + 1, each = units_of_each(group, n_rows);
  const uint32_t first = smaller(group.number * each, all);
  return {first, smaller(first + each, all)};
}

// Also the weights of the norm (constant 2), which each group reads from beginning to end.
__device__ void fetch_ahead_of_quantised(const launch& l, const group_of_launch& group) {
  if (threadIdx.x != 0) return;
  const auto p = params_of<gpu::bit_linear_params>(l);
  fetch_rows_ahead<gpu::bit_linear_params>(l, group,
                                           units_of_each(group, p.n_rows) * one_quantised.rows);
  if (l.constants[2] == 0 || group.number != 0 || blockIdx.y != 0) return;
  fetch_ahead(memory_of<const float>(l, 2), p.k / 4 * 16);
}

}  // namespace

// A group quantises the row once and takes 32 rows of the matrix at a time; its warps divide the
// elements of the rows among them. One warp stores the results while the others continue.
BITNET_KERNEL_JOINED(bit_linear_tiles_one, 3, fetch_ahead_of_quantised) {
  constexpr tile_form form = one_quantised;
  constexpr uint32_t turns = 2, of_turn = warps * form.rows;
  static_assert(form.shared_bytes == turns * of_turn * sizeof(int) + most_quantised &&
                form.rows == warp && most_quantised == 4 * threads * BITNET_KEPT_TURNS);
  const auto p = params_of<gpu::bit_linear_params>(l);
  const code_matrix matrix = {memory_of<const uint32_t>(l, 3), p.row_words, p.n_rows};
  auto* shares = static_cast<int*>(shared_memory());
  auto* q = reinterpret_cast<uint4*>(shares + turns * of_turn);
  const unit_range own_units = units_of(group, p.n_rows);
  if (own_units.first == own_units.last) return;
  each_y(rows_of(l), [&](uint32_t t) {
    __syncthreads();  // no thread reads the previous row any more
    const float s =
        quantise_normed(memory_of<const float>(l, 1) + uint64_t{t} * p.k, l.constants[2] != 0,
                        memory_of<const float>(l, 2), p.k, p.eps, reinterpret_cast<uint32_t*>(q));
    __syncthreads();
    const int activation_share = share_of_activations(q, matrix.halves());
    for (uint32_t unit = own_units.first; unit < own_units.last; ++unit) {
      int* of_unit = shares + unit % turns * of_turn;
      put_share<form.rows / 16>(matrix, unit * form.rows, q, activation_share,
                                of_unit + warp_of_group() * form.rows);
      __syncthreads();  // all have stored, and have read the sums of two units before
      const uint32_t r = unit * form.rows + lane();
      if (warp_of_group() != unit % warps || r >= p.n_rows) continue;
      const uint64_t at = uint64_t{t} * p.m + p.first_row + r;
      float value = static_cast<float>(sum_of_warps(of_unit, form.rows, lane())) / s *
                    memory_of<const float>(l, 4)[0];
      if (p.add) value += memory_of<const float>(l, 5)[at];
      memory_of<float>(l, 6)[at] = value;
    }
  });
}

// Norms, quantisation, the gated activation and the state of the head in steps of few rows, with
// the bits of the kernels in rows.cu and head.cu. A group has four times as many threads, and each
// thread keeps its elements of the row in registers, so that all loads of a row are under way at
// once.
//
// Order  of squares as in square_sum() and in head_state. A thread v of 128 has four sums, and
//        number i of them takes elements 4 v + i, 4 v + i + 512 and so on: here thread 4 v + i has
//        this sum. Two exchanges add up the sums of four adjacent threads, as thread v does
//        there, and the first 128 threads continue as there.

#include "head.cuh"
#include "rows_one.hpp"

#include "bitnet/abi/ops.h"

using namespace bitnet::kernels;
namespace gpu = bitnet::gpu;

namespace {

constexpr uint32_t apart = one_row_threads;  // elements that a thread has

// Calls f(turn, element, inside) for a thread's elements of a row of n, and for elements behind the
// row until all threads have two turns. `inside`, which the compiler knows: in this turn all
// threads have elements among the first `whole`.
template <uint32_t Turns, class F>
__device__ __forceinline__ void each_turn(uint32_t n, uint32_t whole, F f) {
  static_assert(Turns % 2 == 0);
  BITNET_UNROLL
  for (uint32_t turn = 0; turn < Turns; turn += 2) {
    if (turn * apart >= n) break;
    const uint32_t i = turn * apart + threadIdx.x;
    if ((turn + 2) * apart <= whole) {
      f(turn, i, true);
      f(turn + 1, i + apart, true);
    } else {
      f(turn, i, false);
      f(turn + 1, i + apart, false);
    }
  }
}
// Calls f(turn) for as many turns.
template <uint32_t Turns, class F>
__device__ __forceinline__ void each_turn(uint32_t n, F f) {
  each_turn<Turns>(n, 0, [&](uint32_t turn, uint32_t, bool) { f(turn); });
}

// Element i of a row of k; zero behind it.
__device__ __forceinline__ float element(const float* row, uint32_t i, uint32_t k, bool inside) {
  return inside || i < k ? row[i] : 0.0f;
}

__device__ inline exact_sum* sums_of_threads() {
  return static_cast<exact_sum*>(shared_memory());
}

// The bits of norm_factor(), of each thread's own squares.
__device__ inline float factor_of_squares(exact_sum mine, uint32_t k, float eps) {
  for (uint32_t d = 1; d < 4; d *= 2)
    mine = plus(mine, {shuffle_xor(mine.sum, d), shuffle_xor(mine.lost, d)});
  if (threadIdx.x % 4 == 0) sums_of_threads()[threadIdx.x / 4] = mine;
  __syncthreads();
  if (threadIdx.x < threads) mine = sums_of_threads()[threadIdx.x];
  return factor_of(sum_of_threads<one_row_threads>(mine), k, eps);
}

// The same of sums of doubles: the bits of group_sum() in head_state.
__device__ inline double sum_of_doubles(double mine) {
  auto* sums = static_cast<double*>(shared_memory());
  for (uint32_t d = 1; d < 4; d *= 2) mine += shuffle_xor(mine, d);
  if (threadIdx.x % 4 == 0) sums[threadIdx.x / 4] = mine;
  __syncthreads();
  if (threadIdx.x < threads) mine = sums[threadIdx.x];
  return group_sum<one_row_threads>(mine);
}

__device__ inline float max_of_threads(float mine) {
  constexpr uint32_t all = one_row_threads / warp;
  auto* of_warp = reinterpret_cast<float*>(sums_of_threads() + threads);
  for (uint32_t d = warp / 2; d != 0; d /= 2) mine = larger(mine, shuffle_xor(mine, d));
  if (lane() == 0) of_warp[warp_of_group()] = mine;
  __syncthreads();
  mine = of_warp[lane() % all];
  for (uint32_t d = all / 2; d != 0; d /= 2) mine = larger(mine, shuffle_xor(mine, d));
  __syncthreads();
  return mine;
}

// A thread's elements of a row, zeros behind it, and the weights or factors to them.
template <uint32_t Turns>
struct kept_row {
  float x[Turns] = {}, by[Turns] = {};

  __device__ __forceinline__ void load(const float* row, uint32_t k) {
    each_turn<Turns>(k, k, [&](uint32_t turn, uint32_t i, bool inside) {
      x[turn] = element(row, i, k, inside);
    });
  }
  __device__ __forceinline__ void load(const float* row, const float* factors, uint32_t k) {
    each_turn<Turns>(k, k, [&](uint32_t turn, uint32_t i, bool inside) {
      x[turn] = element(row, i, k, inside);
      by[turn] = element(factors, i, k, inside);
    });
  }
  // Zeros behind the row change no sum.
  __device__ __forceinline__ exact_sum squares(uint32_t k) const {
    exact_sum mine = {};
    each_turn<Turns>(k, [&](uint32_t turn) { mine = plus(mine, square(x[turn])); });
    return mine;
  }
  // x becomes activation(x) * by, and `by` the weights: there are no registers for three rows.
  // Returns the squares, if there is a norm.
  template <uint32_t Op>
  __device__ __forceinline__ exact_sum activate(bool norm, const float* weight, uint32_t k) {
    exact_sum mine = {};
    each_turn<Turns>(k, k, [&](uint32_t turn, uint32_t i, bool inside) {
      x[turn] = activation(Op, x[turn]) * by[turn];
      if (!norm) return;
      by[turn] = element(weight, i, k, inside);
      mine = plus(mine, square(x[turn]));
    });
    return mine;
  }
  // Returns the largest magnitude. fmaxf() ignores NaN as larger() does.
  __device__ __forceinline__ float multiply(float factor, uint32_t k) {
    float largest = 0;
    each_turn<Turns>(k, [&](uint32_t turn) {
      x[turn] = x[turn] * factor * by[turn];
      largest = fmaxf(largest, fabsf(x[turn]));
    });
    return largest;
  }
  __device__ __forceinline__ float largest(uint32_t k) const {
    float out = 0;
    each_turn<Turns>(k, [&](uint32_t turn) { out = fmaxf(out, fabsf(x[turn])); });
    return out;
  }
  // As quantise_row(), by bytes: those of a warp are neighbours.
  __device__ __forceinline__ void quantise(float most, uint32_t k, uint32_t* q, float* s) const {
    const float scale = quant_scale(max_of_threads(most));
    auto* codes = reinterpret_cast<uint8_t*>(q);
    const uint32_t whole = (k + 3) / 4 * 4, bytes = 4 * static_cast<uint32_t>(gpu::i8_row_words(k));
    each_turn<Turns>(bytes, k, [&](uint32_t turn, uint32_t i, bool inside) {
      if (!inside && i >= bytes) return;
      const bool some = inside || i < whole;
      codes[i] = static_cast<uint8_t>(some ? quantised_product(x[turn] * scale) : 0);
    });
    if (threadIdx.x == 0) *s = scale;
  }
  // As act_quant_groups, for warps of 32. A warp has 32 neighbours in each turn, so that a group
  // has those of one, two or four warps.
  __device__ __forceinline__ void quantise_groups(uint32_t k, uint32_t group, uint32_t* q,
                                                  float* factors) const {
    constexpr uint32_t of_turn = apart / warp;  // warps
    static_assert(Turns * of_turn * sizeof(float) <= threads * sizeof(exact_sum));
    // The largest of each warp and turn; then, at the first of a group, its scale.
    auto* found = static_cast<float*>(shared_memory());
    each_turn<Turns>(k, 0, [&](uint32_t turn, uint32_t i, bool) {
      float largest = larger(1e-30f, i < k ? fabsf(x[turn]) : 0.0f);
      for (uint32_t d = warp / 2; d != 0; d /= 2)
        largest = larger(largest, shuffle_xor(largest, d));
      if (lane() == 0) found[turn * of_turn + warp_of_group()] = largest;
    });
    __syncthreads();
    const uint32_t warps_of = group / warp;
    if (threadIdx.x < k / group) {  // there are fewer groups than threads
      float* mine = found + threadIdx.x * warps_of;
      float largest = mine[0];
      for (uint32_t w = 1; w < warps_of; ++w) largest = larger(largest, mine[w]);
      factors[threadIdx.x] = largest / 127.0f;
      mine[0] = 127.0f / largest;
    }
    __syncthreads();
    auto* codes = reinterpret_cast<uint8_t*>(q);
    const uint32_t bytes = 4 * static_cast<uint32_t>(gpu::i8_row_words(k));
    const float* scales = found + threadIdx.x / group * warps_of;
    each_turn<Turns>(bytes, 0, [&](uint32_t turn, uint32_t i, bool) {
      if (i >= bytes) return;
      codes[i] = static_cast<uint8_t>(i < k ? quantised(x[turn], scales[turn * of_turn]) : 0);
    });
    __syncthreads();  // the next row has the same memory
  }
};

template <uint32_t Turns>
__device__ __forceinline__ void quantise_gated(const launch& l) {
  const auto p = params_of<gpu::glu_quant_params>(l);
  const auto* gate = memory_of<const float>(l, 1);
  const auto* up = memory_of<const float>(l, 2);
  const auto* weight = memory_of<const float>(l, 3);
  auto* q = memory_of<uint32_t>(l, 5);
  auto* s = memory_of<float>(l, 6);
  const bool norm = l.constants[2] != 0;
  each_row(rows_of(l), [&](uint64_t r) {
    kept_row<Turns> row;
    row.load(gate + r * p.k, up + r * p.k, p.k);
    exact_sum squares;
    if (l.constants[1] == BITNET_OP_RELU2)
      squares = row.template activate<BITNET_OP_RELU2>(norm, weight, p.k);
    else if (l.constants[1] == BITNET_OP_SILU)
      squares = row.template activate<BITNET_OP_SILU>(norm, weight, p.k);
    else
      squares = row.template activate<BITNET_OP_GELU>(norm, weight, p.k);
    const float largest =
        norm ? row.multiply(factor_of_squares(squares, p.k, p.eps), p.k) : row.largest(p.k);
    row.quantise(largest, p.k, q + r * gpu::i8_row_words(p.k), s + r);
  });
}

constexpr uint32_t most_turns = one_row_most / apart, long_turns = one_row_long / apart;

}  // namespace

#define BITNET_ONE_ROW(name) BITNET_KERNEL_BY(name, one_row_threads, 1)

BITNET_ONE_ROW(rms_norm_one) {
  const auto p = params_of<gpu::rms_norm_params>(l);
  const auto* x = memory_of<const float>(l, 1);
  const auto* weight = memory_of<const float>(l, 2);
  auto* y = memory_of<float>(l, 3);
  each_row(uint64_t{rows_of(l)} * p.heads, [&](uint64_t r) {
    kept_row<most_turns> row;
    row.load(x + r * p.k, weight, p.k);
    const float factor = factor_of_squares(row.squares(p.k), p.k, p.eps);
    float* out = y + r * p.k;
    each_turn<most_turns>(p.k, p.k, [&](uint32_t turn, uint32_t i, bool inside) {
      if (inside || i < p.k) out[i] = row.x[turn] * factor * row.by[turn];
    });
  });
}

BITNET_ONE_ROW(act_quant_one) {
  const auto p = params_of<gpu::act_quant_params>(l);
  const auto* x = memory_of<const float>(l, 1);
  auto* q = memory_of<uint32_t>(l, 2);
  auto* s = memory_of<float>(l, 3);
  each_row(rows_of(l), [&](uint64_t r) {
    kept_row<most_turns> row;
    row.load(x + r * p.k, p.k);
    row.quantise(row.largest(p.k), p.k, q + r * gpu::i8_row_words(p.k), s + r);
  });
}

BITNET_ONE_ROW(norm_quant_one) {
  const auto p = params_of<gpu::norm_quant_params>(l);
  const auto* x = memory_of<const float>(l, 1);
  const auto* weight = memory_of<const float>(l, 2);
  auto* q = memory_of<uint32_t>(l, 3);
  auto* s = memory_of<float>(l, 4);
  each_row(rows_of(l), [&](uint64_t r) {
    kept_row<most_turns> row;
    row.load(x + r * p.k, weight, p.k);
    const float factor = factor_of_squares(row.squares(p.k), p.k, p.eps);
    row.quantise(row.multiply(factor, p.k), p.k, q + r * gpu::i8_row_words(p.k), s + r);
  });
}

BITNET_ONE_ROW(norm_quant_groups_one) {
  const auto p = params_of<gpu::norm_quant_groups_params>(l);
  const auto* x = memory_of<const float>(l, 1);
  const auto* weight = memory_of<const float>(l, 2);
  auto* q = memory_of<uint32_t>(l, 3);
  auto* d = memory_of<float>(l, 4);
  each_row(rows_of(l), [&](uint64_t r) {
    kept_row<most_turns> row;
    row.load(x + r * p.k, weight, p.k);
    row.multiply(factor_of_squares(row.squares(p.k), p.k, p.eps), p.k);
    row.quantise_groups(p.k, p.group, q + r * gpu::i8_row_words(p.k), d + r * (p.k / p.group));
  });
}

BITNET_ONE_ROW(glu_quant_one) {
  quantise_gated<most_turns>(l);
}
BITNET_ONE_ROW(glu_quant_one_long) {
  quantise_gated<long_turns>(l);
}

BITNET_ONE_ROW(head_state_one) {
  const auto p = params_of<gpu::head_state_params>(l);
  const auto* x = memory_of<const float>(l, 1);
  auto* states = memory_of<uint32_t>(l, 2);
  auto* counts = memory_of<uint32_t>(l, 3);
  const uint32_t bytes = 4 * static_cast<uint32_t>(gpu::i8_row_words(p.k));
  each_row(rows_of(l), [&](uint64_t r) {
    kept_row<most_turns> row;
    row.load(x + r * p.k, p.k);
    for (uint32_t i = threadIdx.x; i < gpu::head_count_words; i += one_row_threads)
      counts[r * gpu::head_count_words + i] = 0;
    double size = 0, error = 0;
    each_turn<most_turns>(p.k, [&](uint32_t turn) { size += double_square(row.x[turn]); });
    const float scale = state_scale(max_of_threads(row.largest(p.k)));
    size = sum_of_doubles(size);
    if (is_lost(size)) row = {};
    uint32_t* state = states + r * gpu::head_state_words(p.k);
    auto* codes = reinterpret_cast<uint8_t*>(state);
    each_turn<most_turns>(bytes, bytes, [&](uint32_t turn, uint32_t i, bool inside) {
      if (!inside && i >= bytes) return;
      const state_code code = state_code_of(row.x[turn], scale);
      error += code.error;
      codes[i] = static_cast<uint8_t>(code.high);
      codes[bytes + i] = static_cast<uint8_t>(code.low);
    });
    error = sum_of_doubles(error);
    if (threadIdx.x == 0) put_state_end(state + bytes / 2, p.k, scale, size, error);
  });
}

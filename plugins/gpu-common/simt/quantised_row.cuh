#pragma once
// The row of a product, which each group quantises itself, after its norm if it has one.

#include "group.cuh"

namespace bitnet::kernels {

#ifdef BITNET_KEPT_TURNS
// A thread keeps its elements of a row in registers, so that all loads of a row are under way at
// once. Turns: in each of them the threads take four elements each.
template <uint32_t Turns>
struct kept_row {
  float of[Turns][4] = {};

  // Calls f(turn, four elements, inside) for a row of k. `inside`, which the compiler knows: in
  // this turn all threads have elements of the row.
  template <class F>
  static __device__ __forceinline__ void each_turn(uint32_t k, F f) {
    BITNET_UNROLL
    for (uint32_t turn = 0; turn < Turns; ++turn) {
      if (4 * threads * turn >= k) break;
      const uint32_t w = threads * turn + threadIdx.x;
      if (4 * threads * (turn + 1) <= k)
        f(turn, w, true);
      else
        f(turn, w, false);
    }
  }
  // The row is aligned to loads of four elements, and k is a multiple of four.
  __device__ __forceinline__ void load(const float* row, uint32_t k) {
    each_turn(k, [&](uint32_t turn, uint32_t w, bool inside) {
      if (!inside && 4 * w >= k) return;
      const uint4 words = *reinterpret_cast<const uint4*>(row + 4 * w);
      of[turn][0] = bits_of<float>(words.x);
      of[turn][1] = bits_of<float>(words.y);
      of[turn][2] = bits_of<float>(words.z);
      of[turn][3] = bits_of<float>(words.w);
    });
  }
  // The bits of norm_factor(): zeros behind the row change no sum.
  __device__ __forceinline__ float norm_factor(uint32_t k, float eps) const {
    exact_sum each[4] = {};
    each_turn(k, [&](uint32_t turn, uint32_t, bool) {
      for (uint32_t i = 0; i < 4; ++i) each[i] = plus(each[i], square(of[turn][i]));
    });
    return factor_of(sum_of_threads<threads>(plus(plus(each[0], each[1]), plus(each[2], each[3]))),
                     k, eps);
  }
  // The bits of quantise_row().
  __device__ __forceinline__ float quantise(uint32_t k, uint32_t* q) const {
    float largest = 0;  // fmaxf() ignores NaN as larger() does
    each_turn(k, [&](uint32_t turn, uint32_t, bool) {
      for (uint32_t i = 0; i < 4; ++i) largest = fmaxf(largest, fabsf(of[turn][i]));
    });
    const float scale = quant_scale(group_max(largest));
    const auto words = static_cast<uint32_t>(gpu::i8_row_words(k));
    each_turn(4 * words, [&](uint32_t turn, uint32_t w, bool) {
      const float(&v)[4] = of[turn];
      if (w < words)
        q[w] = 4 * w < k ? packed4(quantised_product(v[0] * scale), quantised_product(v[1] * scale),
                                   quantised_product(v[2] * scale), quantised_product(v[3] * scale))
                         : 0;
    });
    return scale;
  }
};

__device__ __forceinline__ bool is_aligned(const float* row) {
  return reinterpret_cast<uint64_t>(row) % 16 == 0;
}
#endif

// Codes of a row, after its norm if it has one. Returns the scale.
__device__ __forceinline__ float quantise_normed(const float* in, bool norm, const float* weight,
                                                 uint32_t k, float eps, uint32_t* q) {
#ifdef BITNET_KEPT_TURNS
  if (k <= 4 * threads * BITNET_KEPT_TURNS && k % 4 == 0 && is_aligned(in) &&
      (!norm || is_aligned(weight))) {
    using kept = kept_row<BITNET_KEPT_TURNS>;
    kept row, by;
    row.load(in, k);
    if (!norm) return row.quantise(k, q);
    by.load(weight, k);
    const float factor = row.norm_factor(k, eps);
    kept::each_turn(k, [&](uint32_t turn, uint32_t, bool) {
      for (uint32_t i = 0; i < 4; ++i) row.of[turn][i] = row.of[turn][i] * factor * by.of[turn][i];
    });
    return row.quantise(k, q);
  }
#endif
  if (norm) {
    const float factor = norm_factor(in, k, eps);
    return quantise_row(
        [&](uint32_t w, float(&v)[4]) { normed_four_of(in, factor, weight, w, k, v); }, k, q);
  }
  return quantise_row([&](uint32_t w, float(&v)[4]) { four_of(in, w, k, v); }, k, q);
}

}  // namespace bitnet::kernels

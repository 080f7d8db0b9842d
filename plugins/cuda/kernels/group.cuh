#pragma once
// Sums and maxima over the threads of a group: all of them call, and all of them get the result.

#include "common.cuh"

namespace bitnet::cuda {

__device__ inline float group_max(float mine) {
  __shared__ float of_warp[warps];
  for (uint32_t d = warp / 2; d != 0; d /= 2) mine = larger(mine, shuffle_xor(mine, d));
  if (lane() == 0) of_warp[warp_of_group()] = mine;
  __syncthreads();
  mine = of_warp[0];
  for (uint32_t w = 1; w < warps; ++w) mine = larger(mine, of_warp[w]);
  __syncthreads();
  return mine;
}

// A sum and what rounding took from it, so that its error is that of a few roundings in f32.
struct exact_sum {
  float sum, lost;
};
__device__ inline exact_sum plus(exact_sum a, exact_sum b) {
  const float sum = a.sum + b.sum;
  const float part = sum - a.sum;
  const float lost = (a.sum - (sum - part)) + (b.sum - part);
  return {sum, a.lost + b.lost + lost};
}
__device__ inline exact_sum square(float x) {
  const float product = x * x;
  return {product, fmaf(x, x, -product)};
}

__device__ inline exact_sum square_sum(const float* x, uint32_t k) {
  __shared__ exact_sum of_warp[warps];
  exact_sum mine = {0, 0};
  for (uint32_t i = threadIdx.x; i < k; i += threads) mine = plus(mine, square(x[i]));
  for (uint32_t d = warp / 2; d != 0; d /= 2)
    mine = plus(mine, {shuffle_xor(mine.sum, d), shuffle_xor(mine.lost, d)});
  if (lane() == 0) of_warp[warp_of_group()] = mine;
  __syncthreads();
  mine = of_warp[0];
  for (uint32_t w = 1; w < warps; ++w) mine = plus(mine, of_warp[w]);
  __syncthreads();
  return mine;
}

// 1 / sqrt(mean(x^2) + eps)
__device__ inline float norm_factor(const float* x, uint32_t k, float eps) {
  const exact_sum total = square_sum(x, k);
  return 1.0f / sqrtf((total.sum + total.lost) / static_cast<float>(k) + eps);
}
// The same of two rows at once: the steps of one fill the waits of the other.
struct two_sums {
  exact_sum of[2];
};
__device__ inline two_sums square_sums(const float* a, const float* b, uint32_t k) {
  __shared__ two_sums of_warp[warps];
  two_sums mine = {};
  for (uint32_t i = threadIdx.x; i < k; i += threads) {
    mine.of[0] = plus(mine.of[0], square(a[i]));
    mine.of[1] = plus(mine.of[1], square(b[i]));
  }
  for (uint32_t d = warp / 2; d != 0; d /= 2)
    for (exact_sum& one : mine.of)
      one = plus(one, {shuffle_xor(one.sum, d), shuffle_xor(one.lost, d)});
  if (lane() == 0) of_warp[warp_of_group()] = mine;
  __syncthreads();
  mine = of_warp[0];
  for (uint32_t w = 1; w < warps; ++w)
    for (uint32_t i = 0; i < 2; ++i) mine.of[i] = plus(mine.of[i], of_warp[w].of[i]);
  __syncthreads();
  return mine;
}
// 1 / sqrt(sum(x^2) + eps)
__device__ inline float inverse_length(const exact_sum& total, float eps) {
  return 1.0f / sqrtf(total.sum + total.lost + eps);
}

// ACT_QUANT_I8 of the k values value(i): codes to q, zeros behind them. Returns the scale.
template <class Value>
__device__ float quantise_row(Value value, uint32_t k, uint32_t* q) {
  float largest = 0;
  for (uint32_t i = threadIdx.x; i < k; i += threads) largest = larger(largest, fabsf(value(i)));
  const float scale = quant_scale(group_max(largest));
  const auto code = [&](uint32_t i) { return i < k ? quantised(value(i), scale) : 0; };
  const auto words = static_cast<uint32_t>(gpu::i8_row_words(k));
  for (uint32_t w = threadIdx.x; w < words; w += threads)
    q[w] = packed4(code(4 * w), code(4 * w + 1), code(4 * w + 2), code(4 * w + 3));
  return scale;
}

}  // namespace bitnet::cuda

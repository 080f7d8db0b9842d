#pragma once
// Sums and maxima over the threads of a group: all threads call them, and all get the result.

#include "common.cuh"

namespace bitnet::kernels {

// Returns how many groups have increased the counter before this one.
__device__ inline uint32_t turn_of_group(uint32_t* counter) {
  __shared__ uint32_t turn;
  __syncthreads();
  if (threadIdx.x == 0) turn = atomicAdd(counter, 1u);
  __syncthreads();
  const uint32_t mine = turn;
  __syncthreads();  // all have read it before the next call changes it
  return mine;
}

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

// Elements 4 w to 4 w + 3 of a row of k, zeros behind it; in one load where they are aligned to it.
__device__ inline void four_of(const float* row, uint32_t w, uint32_t k, float (&out)[4]) {
  if (4 * w + 4 <= k) {
    const uint4 words = load4(reinterpret_cast<const uint32_t*>(row + 4 * w));
    out[0] = bits_of<float>(words.x);
    out[1] = bits_of<float>(words.y);
    out[2] = bits_of<float>(words.z);
    out[3] = bits_of<float>(words.w);
  } else {
    for (uint32_t i = 0; i < 4; ++i) out[i] = 4 * w + i < k ? row[4 * w + i] : 0.0f;
  }
}
// Stores those of the four elements that the row has.
__device__ inline void put_four(float* row, uint32_t w, uint32_t k, const float (&v)[4]) {
  float* to = row + 4 * w;
  if (4 * w + 4 <= k && reinterpret_cast<uint64_t>(to) % 16 == 0)
    *reinterpret_cast<uint4*>(to) = make_uint4(bits_of<uint32_t>(v[0]), bits_of<uint32_t>(v[1]),
                                               bits_of<uint32_t>(v[2]), bits_of<uint32_t>(v[3]));
  else
    for (uint32_t i = 0; i < 4 && 4 * w + i < k; ++i) to[i] = v[i];
}
// The same for a row that is multiplied by `factor` and by weights.
__device__ inline void normed_four_of(const float* row, float factor, const float* weight,
                                      uint32_t w, uint32_t k, float (&out)[4]) {
  float by[4];
  four_of(row, w, k, out);
  four_of(weight, w, k, by);
  for (uint32_t i = 0; i < 4; ++i) out[i] = out[i] * factor * by[i];
}

// A compensated sum: the sum, and the part that rounding removed. Its error is that of a few
// roundings in f32.
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

// The sum over the first `threads` threads of a group of `Threads`.
template <uint32_t Threads>
__device__ exact_sum sum_of_threads(exact_sum mine) {
  __shared__ exact_sum of_warp[warps];
  if (Threads == threads || warp_of_group() < warps) {
    for (uint32_t d = warp / 2; d != 0; d /= 2)
      mine = plus(mine, {shuffle_xor(mine.sum, d), shuffle_xor(mine.lost, d)});
    if (lane() == 0) of_warp[warp_of_group()] = mine;
  }
  __syncthreads();
  mine = of_warp[0];
  for (uint32_t w = 1; w < warps; ++w) mine = plus(mine, of_warp[w]);
  __syncthreads();
  return mine;
}

__device__ inline exact_sum square_sum(const float* x, uint32_t k) {
  exact_sum each[4] = {};  // independent, so that their additions overlap
  for (uint32_t w = threadIdx.x; 4 * w < k; w += threads) {
    float v[4];
    four_of(x, w, k, v);
    for (uint32_t i = 0; i < 4; ++i) each[i] = plus(each[i], square(v[i]));
  }
  return sum_of_threads<threads>(plus(plus(each[0], each[1]), plus(each[2], each[3])));
}

// The same by one warp, with the same bits: its lanes take the elements of the threads of one warp
// of a group after the other. Lane 0 gets the result.
__device__ inline exact_sum square_sum_of_warp(const float* x, uint32_t k) {
  exact_sum all = {};
  for (uint32_t first = 0; first < threads; first += warp) {
    exact_sum each[4] = {};
    for (uint32_t w = first + lane(); 4 * w < k; w += threads) {
      float v[4];
      four_of(x, w, k, v);
      for (uint32_t i = 0; i < 4; ++i) each[i] = plus(each[i], square(v[i]));
    }
    exact_sum mine = plus(plus(each[0], each[1]), plus(each[2], each[3]));
    for (uint32_t d = warp / 2; 4 * first < k && d != 0; d /= 2)
      mine = plus(mine, {shuffle_xor(mine.sum, d), shuffle_xor(mine.lost, d)});
    all = first == 0 ? mine : plus(all, mine);
  }
  return all;
}

// 1 / sqrt(mean(x^2) + eps)
__device__ inline float factor_of(const exact_sum& total, uint32_t k, float eps) {
  return 1.0f / sqrtf((total.sum + total.lost) / static_cast<float>(k) + eps);
}
__device__ inline float norm_factor(const float* x, uint32_t k, float eps) {
  return factor_of(square_sum(x, k), k, eps);
}
// The same for two rows at once: the instructions of one hide the latency of the other's.
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

// ACT_QUANT_I8 of k values: codes to q, zeros behind them. Returns the scale. four(w, out) gives
// values 4 w to 4 w + 3, and zeros behind the last one.
template <class Four>
__device__ float quantise_row(Four four, uint32_t k, uint32_t* q) {
  float largest = 0, v[4];
  for (uint32_t w = threadIdx.x; 4 * w < k; w += threads) {
    four(w, v);
    for (const float x : v) largest = larger(largest, fabsf(x));
  }
  const float scale = quant_scale(group_max(largest));
  const auto words = static_cast<uint32_t>(gpu::i8_row_words(k));
  for (uint32_t w = threadIdx.x; w < words; w += threads) {
    if (4 * w < k)
      four(w, v);
    else
      v[0] = v[1] = v[2] = v[3] = 0;
    q[w] = packed4(quantised(v[0], scale), quantised(v[1], scale), quantised(v[2], scale),
                   quantised(v[3], scale));
  }
  return scale;
}

}  // namespace bitnet::kernels

#pragma once
// What the kernels of the two-stage head share. plugins/gpu-common/kernels.hpp defines what they
// compute.

#include "group.cuh"

namespace bitnet::kernels {

// Functions with shared memory are not in an unnamed namespace: the memory's name would contain a
// hash of the folder of the build, so that the same sources would give another file in each folder.
inline __device__ double sum_in_warp(double mine) {
  for (uint32_t d = warp / 2; d != 0; d /= 2) mine += shuffle_xor(mine, d);
  return mine;
}
// The sum over the first `threads` threads of a group of `Threads`.
template <uint32_t Threads>
__device__ double group_sum(double mine) {
  __shared__ double of_warp[warps];
  if (Threads == threads || warp_of_group() < warps) {
    mine = sum_in_warp(mine);
    if (lane() == 0) of_warp[warp_of_group()] = mine;
  }
  __syncthreads();
  mine = of_warp[0];
  for (uint32_t w = 1; w < warps; ++w) mine += of_warp[w];
  __syncthreads();
  return mine;
}

// An upper bound of the root of a sum of squares.
constexpr float rounded_up = 1.001f;       // norms are sums of rounded terms
constexpr double least = 1.401298464e-45;  // of f32, and above the error of rounding to f32
__device__ inline float norm_of(double squares) {
  return static_cast<float>(rounded_up * sqrt(squares) + least);
}

__device__ inline int within(float x, float most) {
  return static_cast<int>(fmaxf(fminf(x, most), -most));
}

__device__ inline double double_square(float x) {
  return static_cast<double>(x) * static_cast<double>(x);
}
// An element of a state is a code from -top_code to top_code, times the scale of the row.
constexpr int top_code = 16256;  // 127 * 128
__device__ inline float state_scale(float largest) {
  return (largest > 1e-30f ? largest : 1e-30f) / static_cast<float>(top_code);
}
struct state_code {
  int high, low;  // the code is 128 high + low
  double error;   // square of the difference to the element
};
__device__ inline state_code state_code_of(float x, float scale) {
  const int z = within(rintf(x / scale), static_cast<float>(top_code)), high = (z + 64) >> 7;
  const double off = x - static_cast<double>(scale) * z;
  return {high, z - 128 * high, off * off};
}
// True if a sum of squares has terms that are not finite, or is too large for a norm. As whole
// numbers, the bits of such sums have the order of the sums, and those of NaNs come last.
__device__ inline bool is_lost(double squares) {
  return bits_of<uint64_t>(squares) >= bits_of<uint64_t>(1e60);
}
// Writes the words behind the codes of a state of k elements. `size` and `error`: the sums of
// squares of the elements and of the errors of their codes.
__device__ inline void put_state_end(uint32_t* to, uint32_t k, float scale, double size,
                                     double error) {
  const float x_norm = norm_of(size);
  const float rounding = (static_cast<float>(k) / 128.0f + 16.0f) * 0x1p-24f * x_norm;
  to[0] = bits_of<uint32_t>(scale);
  to[1] = bits_of<uint32_t>(x_norm);
  to[2] = bits_of<uint32_t>(norm_of(error) + rounding);
  to[3] = is_lost(size) ? 0 : 1;
}

}  // namespace bitnet::kernels

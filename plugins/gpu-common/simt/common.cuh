#pragma once
// What all kernels share; plugins/gpu-common/kernels.hpp says what each of them computes. They are
// compiled without contraction, with division and square root rounded correctly, and with the
// device.cuh of the device's maker in front of each (-include), which has what differs between
// makers.

#include "bitnet/abi/ops.h"
#include "gpu-common/kernels.hpp"

// Defines a function that the plugin finds by name. Its registers permit at least `groups` groups
// on a multiprocessor. A graph may launch a kernel while earlier ones still compute
// (recording.cpp), so every thread waits, without a condition, before the body. Only then may later
// kernels begin. A kernel that waits for this one has thereby waited for all earlier ones.
#define BITNET_KERNEL_BY(name, threads, groups)                                         \
  static __device__ __forceinline__ void name##_body(const bitnet::kernels::launch& l); \
  extern "C" __global__ void __launch_bounds__(threads, groups)                         \
      name(const __grid_constant__ bitnet::kernels::launch l) {                         \
    wait_for_kernels_before();                                                          \
    let_kernels_behind_begin();                                                         \
    name##_body(l);                                                                     \
  }                                                                                     \
  static __device__ __forceinline__ void name##_body(const bitnet::kernels::launch& l)
#define BITNET_KERNEL_OF(name, groups) \
  BITNET_KERNEL_BY(name, bitnet::kernels::group_threads, groups)
#define BITNET_KERNEL(name) BITNET_KERNEL_OF(name, 4)
// The same, and a second function name_joined, which runs several launches as one. The body also
// gets its group's number in its launch. Before the wait, a group calls ahead(l, group), which
// reads only the launch and requests weights by fetch_ahead().
#define BITNET_KERNEL_JOINED(name, groups, ahead)                                          \
  static __device__ __forceinline__ void name##_body(                                      \
      const bitnet::kernels::launch& l, const bitnet::kernels::group_of_launch& group);    \
  extern "C" __global__ void __launch_bounds__(bitnet::kernels::group_threads, groups)     \
      name(const __grid_constant__ bitnet::kernels::launch l) {                            \
    const bitnet::kernels::group_of_launch group = {blockIdx.x, gridDim.x};                \
    ahead(l, group);                                                                       \
    wait_for_kernels_before();                                                             \
    let_kernels_behind_begin();                                                            \
    name##_body(l, group);                                                                 \
  }                                                                                        \
  extern "C" __global__ void __launch_bounds__(bitnet::kernels::group_threads, groups)     \
      name##_joined(const __grid_constant__ bitnet::kernels::joined_launch l) {            \
    bitnet::kernels::group_of_launch group;                                                \
    const bitnet::kernels::launch own_launch = bitnet::kernels::launch_of_group(l, group); \
    ahead(own_launch, group);                                                              \
    wait_for_kernels_before();                                                             \
    let_kernels_behind_begin();                                                            \
    name##_body(own_launch, group);                                                        \
  }                                                                                        \
  static __device__ __forceinline__ void name##_body(                                      \
      const bitnet::kernels::launch& l, const bitnet::kernels::group_of_launch& group)

namespace bitnet::kernels {

constexpr uint32_t threads = group_threads, warp = warp_lanes, warps = threads / warp;

__device__ inline uint32_t lane() {
  return threadIdx.x % warp;
}
__device__ inline uint32_t warp_of_group() {
  return threadIdx.x / warp;
}

// A group of threads among those of its launch, in x.
struct group_of_launch {
  uint32_t number, count;
};
// Returns the launch that the group belongs to, without boxes.
__device__ inline launch launch_of_group(const joined_launch& l, group_of_launch& group) {
  const bool second = blockIdx.x >= l.ends[0], third = blockIdx.x >= l.ends[1];
  const uint32_t first = third ? l.ends[1] : second ? l.ends[0] : 0;
  group = {blockIdx.x - first, (third ? l.ends[2] : second ? l.ends[1] : l.ends[0]) - first};
  const auto selected = [&](auto of_launch) {
    return third ? of_launch(l.of[2]) : second ? of_launch(l.of[1]) : of_launch(l.of[0]);
  };
  launch out;
  for (uint32_t i = 0; i < most_bindings; ++i)
    out.memory[i] = selected([&](const launch& one) { return one.memory[i]; });
  for (uint32_t i = 0; i < 5; ++i)
    out.constants[i] = selected([&](const launch& one) { return one.constants[i]; });
  for (uint32_t i = 0; i < 32; ++i)
    out.params[i] = selected([&](const launch& one) { return one.params[i]; });
  return out;
}

template <class T>
__device__ T* memory_of(const launch& l, uint32_t binding) {
  return memory_at<T>(l.memory[binding]);
}

// The kernel's parameters, as kernels.hpp has them.
template <class Params>
__device__ Params params_of(const launch& l) {
  Params out;
  memcpy(&out, l.params, sizeof out);
  return out;
}

// Returns the number of rows of the step.
__device__ inline uint32_t rows_of(const launch& l) {
  return memory_of<const uint32_t>(l, 0)[l.params[0]];
}

// Calls f(i) for the units [0, n) of axis x that are this thread's, this group's, or this warp's.
template <class F>
__device__ void each_x(uint64_t n, F f) {
  for (uint64_t i = uint64_t{blockIdx.x} * threads + threadIdx.x; i < n;
       i += uint64_t{gridDim.x} * threads)
    f(static_cast<uint32_t>(i));
}
template <class F>
__device__ void each_group(uint64_t n, F f) {
  for (uint64_t i = blockIdx.x; i < n; i += gridDim.x) f(static_cast<uint32_t>(i));
}
template <class F>
__device__ void each_group(const group_of_launch& group, uint64_t n, F f) {
  for (uint64_t i = group.number; i < n; i += group.count) f(static_cast<uint32_t>(i));
}
// Rows of axis y, and of both axes where a row has one group.
template <class F>
__device__ void each_y(uint32_t n, F f) {
  for (uint64_t i = blockIdx.y; i < n; i += gridDim.y) f(static_cast<uint32_t>(i));
}
template <class F>
__device__ void each_row(uint64_t n, F f) {
  for (uint64_t i = uint64_t{blockIdx.y} * gridDim.x + blockIdx.x; i < n;
       i += uint64_t{gridDim.y} * gridDim.x)
    f(i);
}

__device__ inline uint32_t smaller(uint32_t a, uint32_t b) {
  return a < b ? a : b;
}
// x if it is a number above `largest`.
__device__ inline float larger(float largest, float x) {
  return x > largest ? x : largest;
}

template <class To, class From>
__device__ To bits_of(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To out;
  memcpy(&out, &from, sizeof out);
  return out;
}

// Four words, in one load where they are aligned to it.
__device__ inline uint4 load4(const uint32_t* p) {
  if (reinterpret_cast<uint64_t>(p) % 16 == 0) return *reinterpret_cast<const uint4*>(p);
  return make_uint4(p[0], p[1], p[2], p[3]);
}

// Byte i of four words.
__device__ inline uint32_t byte_of(const uint4& words, uint32_t i) {
  const uint32_t word = i < 4 ? words.x : i < 8 ? words.y : i < 12 ? words.z : words.w;
  return word >> (8 * (i % 4)) & 255u;
}

// Sums over the lanes of each of N values, a power of two; lane i gets that of value i * N / warp.
// In each step a lane passes half of its values to a lane of the other half, which keeps the number
// of exchanges low. The order of each sum does not depend on N.
template <class T, uint32_t N>
__device__ T sum_of_lanes(T (&values)[N]) {
  uint32_t left = N;
  for (uint32_t d = warp / 2; d != 0; d /= 2) {
    left /= 2;
    if (left == 0) {
      values[0] += shuffle_xor(values[0], d);
      continue;
    }
    const bool upper = (lane() & d) != 0;
    for (uint32_t i = 0; i < left; ++i) {
      const T given = upper ? values[i] : values[i + left];
      const T kept = upper ? values[i + left] : values[i];
      values[i] = kept + shuffle_xor(given, d);
    }
  }
  return values[0];
}

__device__ inline float quant_scale(float largest) {
  return 127.0f / (largest > 1e-5f ? largest : 1e-5f);
}
__device__ inline int quantised(float x, float scale) {
  // NaN becomes 127: any value will do.
  return static_cast<int>(fmaxf(fminf(rintf(x * scale), 127.0f), -128.0f));
}
__device__ inline uint32_t packed4(int a, int b, int c, int d) {
  return (static_cast<uint32_t>(a) & 255u) | (static_cast<uint32_t>(b) & 255u) << 8 |
         (static_cast<uint32_t>(c) & 255u) << 16 | static_cast<uint32_t>(d) << 24;
}

__device__ inline float activation(uint32_t op, float x) {
  if (op == BITNET_OP_SILU) return x / (1.0f + expf(-x));
  if (op == BITNET_OP_SIGMOID) return 1.0f / (1.0f + expf(-x));
  if (op == BITNET_OP_GELU)  // 2 * sqrt(2 / pi), and 0.044715 of it
    return x / (1.0f + expf(-x * (1.5957691216f + 0.0713548163f * (x * x))));
  const float positive = x > 0 ? x : 0;
  return positive * positive;
}

}  // namespace bitnet::kernels

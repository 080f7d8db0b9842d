#pragma once
// What kernels need of AMD's devices: the words of the language, exchanges between the lanes of a
// wave, products of four bytes. It uses clang's builtins and the device libraries, and no header of
// HIP. Tests compile the same kernels for the CPU: there tests/simt/simt.hpp is
// included first and defines all of it.
//
// All lanes of a wave call a function together if its comment mentions lanes.

#ifndef BITNET_SIMT
#define BITNET_WARP_LANES __AMDGCN_WAVEFRONT_SIZE
#endif

#include "launch.hpp"

// The plugin has code for many architectures, so attention has one kernel for all formats of keys
// and values.
#define BITNET_ATTENTION_OF_GIVEN_FORMATS
// A thread has at most 256 registers.
#define BITNET_SMALL_STATES

// In front of a loop of products. It is not unrolled where a product is many instructions.
#ifdef BITNET_SIMT
#define BITNET_UNROLL_DOTS
#elif defined(BITNET_ROCM_DOTS)
#define BITNET_UNROLL_DOTS _Pragma("unroll")
#else
#define BITNET_UNROLL_DOTS _Pragma("nounroll")
#define BITNET_TERNARY_ROWS 2  // there are no registers for more
#endif
// Clang 15 gives a thread of gfx11 128 registers at most.
#if defined(__GFX11__) && __clang_major__ < 16
#define BITNET_TERNARY_ROWS 2
#endif

#ifndef BITNET_SIMT

#include <cstdint>
#include <type_traits>

// NOLINTBEGIN(bugprone-reserved-identifier): the language's words
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __forceinline__ inline __attribute__((always_inline))
#define __grid_constant__
// `groups` is not used: the compiler chooses how many work groups share a compute unit.
#define __launch_bounds__(threads, groups) \
  __attribute__((amdgpu_flat_work_group_size(threads, threads)))
#define BITNET_UNROLL _Pragma("unroll")
#define BITNET_NO_UNROLL _Pragma("nounroll")
#define INFINITY __builtin_inff()
#define memcpy __builtin_memcpy
#define memset __builtin_memset

struct alignas(8) uint2 {
  uint32_t x, y;
};
__device__ inline uint2 make_uint2(uint32_t x, uint32_t y) {
  return {x, y};
}
struct alignas(16) uint4 {
  uint32_t x, y, z, w;
};
__device__ inline uint4 make_uint4(uint32_t x, uint32_t y, uint32_t z, uint32_t w) {
  return {x, y, z, w};
}

struct index_of_launch {
  uint32_t x, y;
};
__device__ inline index_of_launch index_of_thread() {
  return {__builtin_amdgcn_workitem_id_x(), 0};
}
__device__ inline index_of_launch index_of_group() {
  return {__builtin_amdgcn_workgroup_id_x(), __builtin_amdgcn_workgroup_id_y()};
}
// grid_size is the number of all threads of the launch.
__device__ inline index_of_launch count_of_groups() {
  return {__builtin_amdgcn_grid_size_x() / bitnet::kernels::group_threads,
          __builtin_amdgcn_grid_size_y()};
}
#define threadIdx (index_of_thread())
#define blockIdx (index_of_group())
#define gridDim (count_of_groups())

__device__ inline void __syncthreads() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
__device__ inline void __threadfence() {
  __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent");
}
__device__ inline uint32_t atomicAdd(uint32_t* to, uint32_t more) {
  return __hip_atomic_fetch_add(to, more, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
// NOLINTEND(bugprone-reserved-identifier)

// From the device libraries. The compiler's own square roots are not rounded correctly.
extern "C" __device__ float __ocml_sqrt_f32(float);
extern "C" __device__ double __ocml_sqrt_f64(double);
extern "C" __device__ float __ocml_exp_f32(float);
extern "C" __device__ float __ocml_log1p_f32(float);
__device__ inline float expf(float x) {
  return __ocml_exp_f32(x);
}
__device__ inline float log1pf(float x) {
  return __ocml_log1p_f32(x);
}
__device__ inline float fabsf(float x) {
  return __builtin_fabsf(x);
}
__device__ inline float fmaxf(float a, float b) {
  return __builtin_fmaxf(a, b);
}
__device__ inline float fminf(float a, float b) {
  return __builtin_fminf(a, b);
}
__device__ inline float fmaf(float a, float b, float c) {
  return __builtin_fmaf(a, b, c);
}
__device__ inline float rintf(float x) {
  return __builtin_rintf(x);
}
__device__ inline float sqrtf(float x) {
  return __ocml_sqrt_f32(x);
}
__device__ inline double sqrt(double x) {
  return __ocml_sqrt_f64(x);
}

// A pointer to device memory. The cast marks it as global, so that the compiler emits global loads;
// flat loads first find the address space.
template <class T>
__device__ T* memory_at(uint64_t address) {
  return (T*)(__attribute__((address_space(1))) T*)address;  // no cast with a name does this
}

// Bits of a half to float; exact.
__device__ inline float f16_to_f32(uint32_t bits) {
  const auto half = static_cast<uint16_t>(bits);
  return static_cast<float>(__builtin_bit_cast(_Float16, half));
}
// Both halves of a word, the low one first.
__device__ inline void two_f16_to_f32(uint32_t word, float (&out)[2]) {
  out[0] = f16_to_f32(word);
  out[1] = f16_to_f32(word >> 16);
}
// The address of element `index` of elements of `bytes` bytes each.
__device__ inline const void* address_of(const void* first, uint32_t index, uint32_t bytes) {
  return static_cast<const char*>(first) + uint64_t{index} * bytes;
}
// Rounds to nearest even.
__device__ inline uint32_t f32_to_f16(float x) {
  return __builtin_bit_cast(uint16_t, static_cast<_Float16>(x));
}

// Hides x from the optimiser: the compiler must not assume that x still has the value it computed.
__device__ inline void forget(uint32_t& x) {
  asm volatile("" : "+v"(x));
}

// A queue of the device runs one kernel after the other, so there is nothing to wait for.
__device__ inline void wait_for_kernels_before() {}
__device__ inline void let_kernels_behind_begin() {}
__device__ inline void fetch_ahead(const void*, uint32_t) {}
__device__ inline void fetch_line_ahead(const void*) {}

// A bit for each lane.
#if BITNET_WARP_LANES == 32
using lane_set = uint32_t;
#else
using lane_set = uint64_t;
#endif

// The value of `mine` in lane `from`; all lanes call it.
template <class T>
__device__ T shuffle(T mine, uint32_t from) {
  static_assert(sizeof(T) % 4 == 0);
  int words[sizeof(T) / 4];
  __builtin_memcpy(words, &mine, sizeof mine);
  for (int& word : words) word = __builtin_amdgcn_ds_bpermute(static_cast<int>(4 * from), word);
  __builtin_memcpy(&mine, words, sizeof mine);
  return mine;
}
// The value of `mine` in the lane whose number differs in these bits; all lanes call it.
template <class T>
__device__ T shuffle_xor(T mine, uint32_t bits) {
  return shuffle(mine, (__builtin_amdgcn_workitem_id_x() % BITNET_WARP_LANES) ^ bits);
}
// Bit i: `mine` is true in lane i.
__device__ inline lane_set lanes_with(bool mine) {
  constexpr int not_equal = 33;  // llvm::CmpInst::ICMP_NE
  return static_cast<lane_set>(__builtin_amdgcn_uicmp(mine ? 1u : 0u, 0u, not_equal));
}
// Lanes wait for each other; each then sees what the others wrote.
__device__ inline void meet_lanes() {
  __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "wavefront");
  __builtin_amdgcn_wave_barrier();
}

// Zero bits above the highest set bit; 32 if x is 0.
__device__ inline uint32_t leading_zeros(uint32_t x) {
  return x == 0 ? 32 : static_cast<uint32_t>(__builtin_clz(x));
}

// c plus the products of four signed bytes of a and of b: v_dot4 where the device has it.
__device__ inline int dot4(int a, int b, int c) {
#if __has_builtin(__builtin_amdgcn_sudot4) && defined(BITNET_ROCM_MIXED_DOTS)
  return __builtin_amdgcn_sudot4(true, a, true, b, c, false);
#elif defined(BITNET_ROCM_DOTS)
  return __builtin_amdgcn_sdot4(a, b, c, false);
#else
  for (int i = 0; i < 4; ++i) {
    const int shift = 24 - 8 * i;
    c += (static_cast<int>(static_cast<uint32_t>(a) << shift) >> 24) *
         (static_cast<int>(static_cast<uint32_t>(b) << shift) >> 24);
  }
  return c;
#endif
}
// c plus the products of four unsigned bytes of a with four signed bytes of b. Unless
// takes_all_bits, bit 7 of each byte of a must be clear.
#ifdef BITNET_ROCM_MIXED_DOTS
inline constexpr bool takes_all_bits = true;
__device__ inline int dot4_of_unsigned(uint32_t a, uint32_t b, int c) {
  return __builtin_amdgcn_sudot4(false, static_cast<int>(a), true, static_cast<int>(b), c, false);
}
#else
inline constexpr bool takes_all_bits = false;
__device__ inline int dot4_of_unsigned(uint32_t a, uint32_t b, int c) {
  return dot4(static_cast<int>(a), static_cast<int>(b), c);
}
#endif

// Shared memory of the work group; the launch sets its size.
extern __shared__ uint4 dynamic_shared[];
__device__ inline void* shared_memory() {
  return dynamic_shared;
}

#endif

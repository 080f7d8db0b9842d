#pragma once
// CUDA's words for the CPU, so that the kernels' own text runs where there is no GPU. Every thread
// of a group is a fiber; groups run one after the other. Threads that meet at a barrier or exchange
// values are held until all that must come have come; if some went elsewhere, the process ends and
// says where they are.

#include <cmath>
#include <cstdint>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "bitnet/sdk/formats.hpp"
#include "warp_groups.hpp"

#ifndef BITNET_WARP_LANES
#define BITNET_WARP_LANES 32
#endif

// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): CUDA's names
#define __global__ __attribute__((visibility("default")))
#define __device__
#define __forceinline__ inline
#define __shared__ static  // groups do not run beside each other
#define __grid_constant__
#define __launch_bounds__(...)
#define BITNET_UNROLL
#define BITNET_NO_UNROLL

struct alignas(8) uint2 {
  uint32_t x, y;
};
inline uint2 make_uint2(uint32_t x, uint32_t y) {
  return {x, y};
}
struct alignas(16) uint4 {
  uint32_t x, y, z, w;
};
inline uint4 make_uint4(uint32_t x, uint32_t y, uint32_t z, uint32_t w) {
  return {x, y, z, w};
}

namespace simt {

inline constexpr unsigned int lanes = BITNET_WARP_LANES;

struct index3 {
  unsigned int x = 1, y = 1, z = 1;
};
// Where the running thread stands.
struct place {
  index3 thread{0, 0, 0}, group{0, 0, 0}, groups;
};
extern place here;

using kernel = void (*)(const void* argument);
struct grid {
  index3 groups;
  unsigned int threads = 1;  // of a group
  uint64_t shared_bytes = 0;
  bool waits = false;  // a thread that does anything before wait_for_grids() ends the process
  const char* name = "";
  bool backwards = false;  // the last group runs first
};
// Runs all groups on this thread. One grid at a time.
void run(kernel function, const void* argument, const grid& how);

// A grid that begins before others are through: the threads of its first group come to
// wait_for_grids(), and what they did before saw nothing of those others. Two at most, one of which
// runs.
struct state;
class early {
 public:
  early(kernel function, const void* argument, const grid& how);
  void finish();  // all of it; once

 private:
  state* mine_;
};
void wait_for_grids();
void let_grids_begin();  // behind wait_for_grids()
// Memory that a thread requests before wait_for_grids(), where nothing else may write it: the
// process ends if it has other bytes behind the wait.
void see_ahead(const void* from, uint32_t bytes);

extern void* shared;  // dynamic memory of the group

extern int architecture;  // 90 for sm_90: some have fewer instructions
// A thread's copies to memory of the group are made when it waits for them, so that a read
// before the wait finds other bytes.
void copy_later(void* to, const void* from);
void make_copies();

enum class meeting : uint8_t { none, barrier, shuffle, vote, product, grids, batches, phase };
void meet_group(int line);
// What all lanes of the warp gave; valid until the lane meets again.
const uint64_t* meet_warp(meeting what, unsigned int mask, uint64_t mine, int line);

template <class T>
T shuffled(unsigned int mask, T mine, unsigned int from, int line) {
  static_assert(sizeof(T) <= sizeof(uint64_t));
  uint64_t bits = 0;
  std::memcpy(&bits, &mine, sizeof mine);
  bits = meet_warp(meeting::shuffle, mask, bits, line)[from % lanes];
  T out;
  std::memcpy(&out, &bits, sizeof out);
  return out;
}

}  // namespace simt

#define threadIdx (simt::here.thread)
#define blockIdx (simt::here.group)
#define gridDim (simt::here.groups)

inline void __syncthreads(int line = __builtin_LINE()) {
  simt::meet_group(line);
}
template <class T>
T __shfl_sync(unsigned int mask, T mine, unsigned int from, int line = __builtin_LINE()) {
  return simt::shuffled(mask, mine, from, line);
}
template <class T>
T __shfl_xor_sync(unsigned int mask, T mine, unsigned int other, int line = __builtin_LINE()) {
  return simt::shuffled(mask, mine, (simt::here.thread.x ^ other) % simt::lanes, line);
}
inline void __syncwarp(int line = __builtin_LINE()) {
  simt::meet_warp(simt::meeting::vote, 0xffffffffu, 0, line);
}
// A bit for each lane.
#if BITNET_WARP_LANES == 32
using lane_set = uint32_t;
#else
using lane_set = uint64_t;
#endif
inline lane_set __ballot_sync(unsigned int mask, bool mine, int line = __builtin_LINE()) {
  const uint64_t* all = simt::meet_warp(simt::meeting::vote, mask, mine ? 1 : 0, line);
  lane_set out = 0;
  for (unsigned int i = 0; i < simt::lanes; ++i) out |= static_cast<lane_set>(all[i]) << i;
  return out;
}

// Threads run one at a time, and so do groups.
inline unsigned int atomicAdd(unsigned int* to, unsigned int more) {
  const unsigned int before = *to;
  *to += more;
  return before;
}

inline void __threadfence() {}

inline int __clz(int x) {
  return x == 0 ? 32 : __builtin_clz(static_cast<unsigned int>(x));
}

// Products of four bytes with a sign, added to c. Nearly all that matrices take goes into it.
inline int __dp4a(int a, int b, int c) {
#ifdef __SSE2__
  const auto wide = [](int bytes) {
    const __m128i twice = _mm_unpacklo_epi8(_mm_setzero_si128(), _mm_cvtsi32_si128(bytes));
    return _mm_srai_epi16(twice, 8);
  };
  const __m128i pairs = _mm_madd_epi16(wide(a), wide(b));
  const __m128i sum = _mm_add_epi32(pairs, _mm_shuffle_epi32(pairs, 1));
  return _mm_cvtsi128_si32(_mm_add_epi32(sum, _mm_cvtsi32_si128(c)));
#else
  auto sum = static_cast<uint32_t>(c);
  for (int i = 0; i < 4; ++i)
    sum += static_cast<uint32_t>(int{static_cast<int8_t>(a >> (8 * i))} *
                                 int{static_cast<int8_t>(b >> (8 * i))});
  return static_cast<int>(sum);
#endif
}

// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

// What the device.cuh of makers have beside the language. `line` is the kernel's: lanes that meet
// do so at the same one.
template <class T>
T shuffle(T mine, unsigned int from, int line = __builtin_LINE()) {
  return __shfl_sync(0xffffffffu, mine, from, line);
}
template <class T>
T shuffle_xor(T mine, unsigned int bits, int line = __builtin_LINE()) {
  return __shfl_xor_sync(0xffffffffu, mine, bits, line);
}
inline lane_set lanes_with(bool mine, int line = __builtin_LINE()) {
  return __ballot_sync(0xffffffffu, mine, line);
}
inline void meet_lanes(int line = __builtin_LINE()) {
  __syncwarp(line);
}
inline uint32_t leading_zeros(uint32_t x) {
  return static_cast<uint32_t>(__clz(static_cast<int>(x)));
}
inline int dot4(int a, int b, int c) {
  return __dp4a(a, b, c);
}
template <class T>
T* memory_at(uint64_t address) {
  return reinterpret_cast<T*>(address);
}
inline float f16_to_f32(uint32_t bits) {
  return bitnet::sdk::f16_to_f32(static_cast<uint16_t>(bits));
}
inline void two_f16_to_f32(uint32_t word, float (&out)[2]) {
  out[0] = f16_to_f32(word & 0xffffu);
  out[1] = f16_to_f32(word >> 16);
}
// The address of element `index` of elements of `bytes` bytes each.
inline const void* address_of(const void* first, uint32_t index, uint32_t bytes) {
  return static_cast<const char*>(first) + uint64_t{index} * bytes;
}
inline uint32_t f32_to_f16(float x) {
  return bitnet::sdk::f32_to_f16(x);
}
inline int quantised_product(float x) {
  return static_cast<int>(fmaxf(fminf(rintf(x), 127.0f), -128.0f));
}
inline uint32_t two_f32_to_f16(float first, float second) {
  return f32_to_f16(first) | f32_to_f16(second) << 16;
}
// BITNET_SIMT_SEVEN_BITS: of a device whose products of bytes all have a sign.
#ifdef BITNET_SIMT_SEVEN_BITS
inline constexpr bool takes_all_bits = false;
#else
inline constexpr bool takes_all_bits = true;
#endif
inline int dot4_of_unsigned(uint32_t a, uint32_t b, int c) {
  if (!takes_all_bits) {
    if ((a & 0x80808080u) != 0) __builtin_trap();
    return __dp4a(static_cast<int>(a), static_cast<int>(b), c);
  }
#ifdef __SSE2__
  const __m128i plain =
      _mm_unpacklo_epi8(_mm_cvtsi32_si128(static_cast<int>(a)), _mm_setzero_si128());
  const __m128i wide = _mm_srai_epi16(
      _mm_unpacklo_epi8(_mm_setzero_si128(), _mm_cvtsi32_si128(static_cast<int>(b))), 8);
  const __m128i pairs = _mm_madd_epi16(plain, wide);
  const __m128i sum = _mm_add_epi32(pairs, _mm_shuffle_epi32(pairs, 1));
  return _mm_cvtsi128_si32(_mm_add_epi32(sum, _mm_cvtsi32_si128(c)));
#else
  auto sum = static_cast<uint32_t>(c);
  for (int i = 0; i < 4; ++i)
    sum += static_cast<uint32_t>(static_cast<int>(a >> (8 * i) & 255u) *
                                 int{static_cast<int8_t>(b >> (8 * i))});
  return static_cast<int>(sum);
#endif
}
inline void forget(uint32_t&) {}
inline bool from_sm80() {
  return simt::architecture >= 80;
}

// Of a warp's product: what a lane brings.
struct simt_fragments {
  const uint32_t *a, *b;
};
template <class F>
void simt_multiply(const uint32_t* a, const uint32_t* b, int line, F f) {
  const simt_fragments mine{a, b};
  constexpr unsigned int all = 0xffffffffu;
  const uint64_t* given =
      simt::meet_warp(simt::meeting::product, all, reinterpret_cast<uint64_t>(&mine), line);
  f(simt::here.thread.x % simt::lanes,
    [&](unsigned int lane) { return reinterpret_cast<const simt_fragments*>(given[lane]); });
  // Others have read what lies on this stack.
  simt::meet_warp(simt::meeting::product, all, 0, line);
}
// PTX, "Matrix Fragments for mma.m16n8k32". `dot` multiplies four bytes.
template <class Dot>
void simt_multiply_16x8x32(int (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], int line,
                           Dot dot) {
  simt_multiply(a, b, line, [&](unsigned int lane, auto of) {
    for (unsigned int i = 0; i < 4; ++i) {
      const unsigned int row = lane / 4, column = lane % 4 * 2 + i % 2;
      for (unsigned int word = 0; word < 8; ++word) {
        const uint32_t x = of(row * 4 + word % 4)->a[i / 2 + word / 4 * 2];
        const uint32_t y = of(column * 4 + word % 4)->b[word / 4];
        c[i] = dot(x, y, c[i]);
      }
    }
  });
}
// PTX, "Matrix Fragments for mma.m8n8k16".
template <class Dot>
void simt_multiply_8x8x16(int& c0, int& c1, uint32_t a, uint32_t b, int line, Dot dot) {
  simt_multiply(&a, &b, line, [&](unsigned int lane, auto of) {
    for (unsigned int word = 0; word < 4; ++word) {
      const uint32_t x = *of(lane / 4 * 4 + word)->a;
      c0 = dot(x, *of(lane % 4 * 8 + word)->b, c0);
      c1 = dot(x, *of(lane % 4 * 8 + 4 + word)->b, c1);
    }
  });
}
inline int simt_dot_of_signed(uint32_t a, uint32_t b, int c) {
  return __dp4a(static_cast<int>(a), static_cast<int>(b), c);
}
inline void multiply_16x8x32(int (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                             int line = __builtin_LINE()) {
  simt_multiply_16x8x32(c, a, b, line, simt_dot_of_signed);
}
inline void multiply_8x8x16(int& c0, int& c1, uint32_t a, uint32_t b, int line = __builtin_LINE()) {
  simt_multiply_8x8x16(c0, c1, a, b, line, simt_dot_of_signed);
}
inline void multiply_unsigned_16x8x32(int (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                                      int line = __builtin_LINE()) {
  simt_multiply_16x8x32(c, a, b, line, dot4_of_unsigned);
}
inline void multiply_unsigned_8x8x16(int& c0, int& c1, uint32_t a, uint32_t b,
                                     int line = __builtin_LINE()) {
  simt_multiply_8x8x16(c0, c1, a, b, line, dot4_of_unsigned);
}
// PTX, "Matrix Fragments for mma.m16n8k16 with floating point type": two elements to a word. Sums
// are rounded once for each tile; how hardware does it is not said.
template <class Value>
void simt_multiply_16x8x16(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], int line,
                           Value value) {
  simt_multiply(a, b, line, [&](unsigned int lane, auto of) {
    for (unsigned int i = 0; i < 4; ++i) {
      const unsigned int row = lane / 4, column = lane % 4 * 2 + i % 2;
      double sum = c[i];
      for (unsigned int k = 0; k < 16; ++k) {
        const unsigned int word = k / 2, shift = k % 2 * 16;
        const uint32_t x = of(row * 4 + word % 4)->a[i / 2 + word / 4 * 2] >> shift;
        const uint32_t y = of(column * 4 + word % 4)->b[word / 4] >> shift;
        sum += double{value(x & 0xffffu)} * double{value(y & 0xffffu)};
      }
      c[i] = static_cast<float>(sum);
    }
  });
}
inline void multiply_f16(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                         int line = __builtin_LINE()) {
  simt_multiply_16x8x16(c, a, b, line, f16_to_f32);
}
inline void multiply_bf16(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                          int line = __builtin_LINE()) {
  // There is none: this is never called.
  if (!from_sm80()) __builtin_trap();
  simt_multiply_16x8x16(c, a, b, line, [](uint32_t bits) {
    const uint32_t wide = bits << 16;
    float out;
    std::memcpy(&out, &wide, sizeof out);
    return out;
  });
}
// PTX, "Warp-level matrix load instruction: ldmatrix", with .x4 and .trans.
inline void load_columns(const uint4* row, uint32_t (&out)[4], int line = __builtin_LINE()) {
  constexpr unsigned int all = 0xffffffffu;
  const uint64_t* rows =
      simt::meet_warp(simt::meeting::product, all, reinterpret_cast<uint64_t>(row), line);
  const unsigned int lane = simt::here.thread.x % simt::lanes;
  for (unsigned int m = 0; m < 4; ++m) {
    const auto element = [&](unsigned int r) {
      uint16_t bits = 0;
      std::memcpy(&bits, reinterpret_cast<const char*>(rows[8 * m + r]) + 2 * (lane / 4),
                  sizeof bits);
      return uint32_t{bits};
    };
    out[m] = element(lane % 4 * 2) | element(lane % 4 * 2 + 1) << 16;
  }
  // Others have read the rows.
  simt::meet_warp(simt::meeting::product, all, 0, line);
}
inline void copy_ahead(uint4* to, const uint4* from) {
  if (from_sm80())
    simt::copy_later(to, from);
  else
    *to = *from;
}
inline void wait_for_copies() {
  simt::make_copies();
}
inline void wait_for_kernels_before() {
  simt::wait_for_grids();
}
inline void let_kernels_behind_begin() {
  simt::let_grids_begin();
}
inline void fetch_ahead(const void* from, uint32_t bytes) {
  if (reinterpret_cast<uint64_t>(from) % 16 != 0 || bytes % 16 != 0) __builtin_trap();
  simt::see_ahead(from, bytes);
}
inline void fetch_line_ahead(const void* at) {
  simt::see_ahead(at, 4);
}
inline void* shared_memory() {
  return simt::shared;
}

#include "matrix_cores.hpp"

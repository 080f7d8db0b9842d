#pragma once
// Instructions that other makers' GPUs name differently: exchanges between the lanes of
// a warp (elsewhere called a wave), products of four bytes, and products of small matrices whose
// fragments lie in the lanes. Kernels use them through these functions only, so that the same text
// compiles for another maker's device; tests/cuda/waves_test.py checks this.
//
// All lanes of a warp call a function together if its comment mentions lanes.

#ifndef BITNET_SIMT  // tests/simt/simt.hpp has the same

#include <cstdint>

#include "launch.hpp"

// A bit for each lane.
#if BITNET_WARP_LANES == 32
using lane_set = uint32_t;
#else
using lane_set = uint64_t;
#endif

// The value of `mine` in lane `from`; all lanes call it.
template <class T>
__device__ T shuffle(T mine, uint32_t from) {
  return __shfl_sync(0xffffffffu, mine, from);
}
// The value of `mine` in the lane whose number differs in these bits; all lanes call it.
template <class T>
__device__ T shuffle_xor(T mine, uint32_t bits) {
  return __shfl_xor_sync(0xffffffffu, mine, bits);
}
// Bit i: `mine` is true in lane i.
__device__ inline lane_set lanes_with(bool mine) {
  return __ballot_sync(0xffffffffu, mine);
}
// Lanes wait for each other; each then sees what the others wrote.
__device__ inline void meet_lanes() {
  __syncwarp();
}

// Zero bits above the highest set bit; 32 if x is 0.
__device__ inline uint32_t leading_zeros(uint32_t x) {
  return static_cast<uint32_t>(__clz(static_cast<int>(x)));
}

// c plus the products of four signed bytes of a and of b.
__device__ inline int dot4(int a, int b, int c) {
  return __dp4a(a, b, c);
}
// c plus the products of four unsigned bytes of a with four signed bytes of b. Unless
// takes_all_bits, bit 7 of each byte of a must be clear.
inline constexpr bool takes_all_bits = true;
__device__ inline int dot4_of_unsigned(uint32_t a, uint32_t b, int c) {
  int out;
  asm("dp4a.u32.s32 %0, %1, %2, %3;" : "=r"(out) : "r"(a), "r"(b), "r"(c));
  return out;
}

// Whether the device has the larger tiles below and copies that no thread waits for: sm_75 has
// neither.
__device__ constexpr bool from_sm80() {
#if __CUDA_ARCH__ >= 800
  return true;
#else
  return false;
#endif
}

// c += a b in fragments, by all lanes of a warp: 16 rows of a by 8 columns of b, of 32 signed bytes
// each. Lane i has
//   a  words i % 4 and i % 4 + 4 of rows i / 4 and i / 4 + 8, in this order: the first word of both
//      rows, then the second word of both
//   b  the same words of column i / 4
//   c  columns i % 4 * 2 and the next one, of rows i / 4 and i / 4 + 8
__device__ inline void multiply_16x8x32([[maybe_unused]] int (&c)[4],
                                        [[maybe_unused]] const uint32_t (&a)[4],
                                        [[maybe_unused]] const uint32_t (&b)[2]) {
#if __CUDA_ARCH__ >= 800
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}
// The same of 8 rows by 8 columns, of 16 bytes each: lane i has word i % 4 of row i / 4 and of
// column i / 4, and of c what c[0] and c[1] are above.
__device__ inline void multiply_8x8x16(int& c0, int& c1, uint32_t a, uint32_t b) {
  asm volatile("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0, %1}, {%2}, {%3}, {%0, %1};"
               : "+r"(c0), "+r"(c1)
               : "r"(a), "r"(b));
}

// The same two where the bytes of a have no sign.
__device__ inline void multiply_unsigned_16x8x32([[maybe_unused]] int (&c)[4],
                                                 [[maybe_unused]] const uint32_t (&a)[4],
                                                 [[maybe_unused]] const uint32_t (&b)[2]) {
#if __CUDA_ARCH__ >= 800
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}
__device__ inline void multiply_unsigned_8x8x16(int& c0, int& c1, uint32_t a, uint32_t b) {
  asm volatile("mma.sync.aligned.m8n8k16.row.col.s32.u8.s8.s32 {%0, %1}, {%2}, {%3}, {%0, %1};"
               : "+r"(c0), "+r"(c1)
               : "r"(a), "r"(b));
}

// The same of 16 rows by 8 columns of 16 f16 each, two to a word, and f32 sums: words lie as in
// multiply_16x8x32. sm_75 multiplies 8 of the 16 at a time.
__device__ inline void multiply_f16(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
#if __CUDA_ARCH__ >= 800
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
  for (uint32_t half = 0; half < 2; ++half)
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
        "{%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[2 * half]), "r"(a[2 * half + 1]), "r"(b[half]));
#endif
}
// The same of bf16, which sm_75 does not have.
__device__ inline void multiply_bf16([[maybe_unused]] float (&c)[4],
                                     [[maybe_unused]] const uint32_t (&a)[4],
                                     [[maybe_unused]] const uint32_t (&b)[2]) {
#if __CUDA_ARCH__ >= 800
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}

// Eight by eight elements of 16 bits each, four times, from shared memory: lane i says where row
// i % 8 of matrix i / 8 lies, 16 bytes. out[m] is column i / 4 of matrix m, rows i % 4 * 2 and the
// next one in the low and the high half: a word of b in multiply_f16.
__device__ inline void load_columns(const uint4* row, uint32_t (&out)[4]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
               : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(row)))
               : "memory");
}

#endif

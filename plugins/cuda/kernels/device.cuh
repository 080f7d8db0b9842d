#pragma once
// What kernels need of CUDA beyond its language. Tests compile the same kernels for the CPU, where
// tests/cuda/simt/simt.hpp, which comes before each kernel then, has all of it.

#ifndef BITNET_SIMT

#include <cstdint>

// Before a loop whose index chooses among registers.
#define BITNET_UNROLL _Pragma("unroll")
// Before one that would take too many registers if it were unrolled.
#define BITNET_NO_UNROLL _Pragma("unroll 1")

// Bits of a half to float; exact.
__device__ inline float f16_to_f32(uint32_t bits) {
  float out;
  asm("cvt.f32.f16 %0, %1;" : "=f"(out) : "h"(static_cast<uint16_t>(bits)));
  return out;
}
// Rounds to nearest even.
__device__ inline uint32_t f32_to_f16(float x) {
  uint16_t out;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(out) : "f"(x));
  return out;
}

// Products of four bytes without a sign and four with one, added to c.
__device__ inline int dot4_of_unsigned(uint32_t a, uint32_t b, int c) {
  int out;
  asm("dp4a.u32.s32 %0, %1, %2, %3;" : "=r"(out) : "r"(a), "r"(b), "r"(c));
  return out;
}

// What sm_75 does not have: the larger of the tiles below, and copies that nobody waits for.
__device__ constexpr bool from_sm80() {
#if __CUDA_ARCH__ >= 800
  return true;
#else
  return false;
#endif
}

// Adds to c, in fragments of a warp, the products of 16 rows of a by 8 columns of b, 32 bytes with
// a sign each. Lane i has of a the words i % 4 and i % 4 + 4 of rows i / 4 and i / 4 + 8 (in the
// order row, row + 8, row, row + 8), of b the same words of column i / 4, and of c columns i % 4 *
// 2 and the next of rows i / 4 and i / 4 + 8.
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
// The same of 8 rows by 8 columns, 16 bytes each: word i % 4 of row and column i / 4.
__device__ inline void multiply_8x8x16(int& c0, int& c1, uint32_t a, uint32_t b) {
  asm volatile("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0, %1}, {%2}, {%3}, {%0, %1};"
               : "+r"(c0), "+r"(c1)
               : "r"(a), "r"(b));
}

// The same of 16 rows by 8 columns of 16 f16 each, two to a word, added to f32: words lie as in
// multiply_16x8x32. sm_75 takes half as many at once.
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
// Of bf16, which sm_75 does not have.
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

// Copies 16 aligned bytes into memory of the group, past the first cache. They are there for the
// thread once it has called wait_for_copies(), and for others behind a barrier after that.
__device__ inline void copy_ahead(uint4* to, const uint4* from) {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
               :
               : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(to))), "l"(from)
               : "memory");
#else
  *to = *from;
#endif
}
__device__ inline void wait_for_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

// Until kernels that this one was launched beside are through, and what they wrote is seen. Where
// it was launched behind them there is nothing to wait for, and before sm_90 it always is.
__device__ inline void wait_for_kernels_before() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
// Kernels that may be launched beside this one are, once all of its groups have come here.
__device__ inline void let_kernels_behind_begin() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// Memory of the group whose size the launch says.
extern __shared__ uint4 dynamic_shared[];
__device__ inline void* shared_memory() {
  return dynamic_shared;
}

#endif

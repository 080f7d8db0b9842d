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

// Adds to c, in fragments of a warp, the products of 16 rows of a by 8 columns of b, 32 bytes with
// a sign each. Lane i has of a the words i % 4 and i % 4 + 4 of rows i / 4 and i / 4 + 8 (in the
// order row, row + 8, row, row + 8), of b the same words of column i / 4, and of c columns i % 4 *
// 2 and the next of rows i / 4 and i / 4 + 8.
__device__ inline void multiply_fragments(int (&c)[4], const uint32_t (&a)[4],
                                          const uint32_t (&b)[2]) {
#if __CUDA_ARCH__ >= 800
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
  for (int half = 0; half < 2; ++half)
    for (int i = 0; i < 2; ++i)
      asm volatile("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0, %1}, {%2}, {%3}, {%0, %1};"
                   : "+r"(c[2 * i]), "+r"(c[2 * i + 1])
                   : "r"(a[2 * half + i]), "r"(b[half]));
#endif
}

// Memory of the group whose size the launch says.
extern __shared__ uint4 dynamic_shared[];
__device__ inline void* shared_memory() {
  return dynamic_shared;
}

#endif

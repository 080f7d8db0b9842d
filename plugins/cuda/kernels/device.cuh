#pragma once
// What kernels need of CUDA beyond its language. Tests compile the same kernels for the CPU, and
// have another file of this name's content: tests/cuda/simt/simt.hpp.

#ifdef BITNET_SIMT
#include "simt.hpp"
#else

#include <cstdint>

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

// Memory of the group whose size the launch says.
extern __shared__ uint4 dynamic_shared[];
__device__ inline void* shared_memory() {
  return dynamic_shared;
}

#endif

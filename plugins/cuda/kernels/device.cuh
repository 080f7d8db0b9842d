#pragma once
// What kernels need of CUDA besides its language and wave.cuh: conversions, copies ahead, launches
// that overlap, and instructions of sm_90 alone. Tests compile the same kernels for the CPU: there
// tests/simt/simt.hpp is included first and defines all of it.

#include "launch.hpp"

// bit_linear keeps a row of at most so many times 512 elements in registers.
#define BITNET_KEPT_TURNS 10

#ifndef BITNET_SIMT

#include <cstdint>

#include "wave.cuh"

// In front of a loop whose index selects registers.
#define BITNET_UNROLL _Pragma("unroll")
// In front of a loop that would need too many registers if it were unrolled.
#define BITNET_NO_UNROLL _Pragma("unroll 1")

// A pointer to device memory.
template <class T>
__device__ T* memory_at(uint64_t address) {
  return reinterpret_cast<T*>(address);
}

// Bits of a half to float; exact.
__device__ inline float f16_to_f32(uint32_t bits) {
  float out;
  asm("cvt.f32.f16 %0, %1;" : "=f"(out) : "h"(static_cast<uint16_t>(bits)));
  return out;
}
// Both halves of a word, the low one first.
__device__ inline void two_f16_to_f32(uint32_t word, float (&out)[2]) {
  asm("{\n"
      ".reg .b16 low, high;\n"
      "mov.b32 {low, high}, %2;\n"
      "cvt.f32.f16 %0, low;\n"
      "cvt.f32.f16 %1, high;\n"
      "}"
      : "=f"(out[0]), "=f"(out[1])
      : "r"(word));
}
// The address of element `index` of elements of `bytes` bytes each in global memory, in one
// instruction.
__device__ inline const void* address_of(const void* first, uint32_t index, uint32_t bytes) {
  uint64_t out;
  asm("mad.wide.u32 %0, %1, %2, %3;"
      : "=l"(out)
      : "r"(index), "r"(bytes), "l"(__cvta_generic_to_global(first)));
  return __cvta_global_to_generic(out);
}
// Rounds to nearest even.
__device__ inline uint32_t f32_to_f16(float x) {
  uint16_t out;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(out) : "f"(x));
  return out;
}

// Two of them in a word, the first in the low half.
__device__ inline uint32_t two_f32_to_f16(float first, float second) {
#if __CUDA_ARCH__ >= 800
  uint32_t out;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(out) : "f"(second), "f"(first));
  return out;
#else
  return f32_to_f16(first) | f32_to_f16(second) << 16;
#endif
}

// What quantised() makes of a product of a value and its scale: rounded to nearest even, at least
// -128 and at most 127; NaN becomes 127.
__device__ inline int quantised_product(float x) {
  int out;
  asm("cvt.rni.sat.s8.f32 %0, %1;" : "=r"(out) : "f"(fminf(x, 127.0f)));
  return out;
}

// Hides x from the optimiser: the compiler must not assume that x still has the value it computed.
__device__ inline void forget(uint32_t& x) {
  asm volatile("" : "+r"(x));
}

// Copies 16 aligned bytes to shared memory, past the L1 cache. The thread sees them after
// wait_for_copies(), other threads after a barrier that follows it.
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

// Waits until the kernels that were launched before this one, and may run beside it, are done; what
// they wrote is then visible. Before sm_90 no kernel runs beside another.
__device__ inline void wait_for_kernels_before() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
// Kernels that may run beside this one begin when all of its work groups have called this.
__device__ inline void let_kernels_behind_begin() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
// Requests memory that is read soon: it comes into the L2 cache, and no thread waits for it. Called
// before wait_for_kernels_before(), and so only for memory that no command of a recording writes.
// Address and bytes are multiples of 16. Before sm_90 there is no such wait, and these do nothing.
__device__ inline void fetch_ahead([[maybe_unused]] const void* from,
                                   [[maybe_unused]] uint32_t bytes) {
#if __CUDA_ARCH__ >= 900
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;"
               :
               : "l"(__cvta_generic_to_global(from)), "r"(bytes)
               : "memory");
#endif
}
// The same of the line of the cache that an address lies in.
__device__ inline void fetch_line_ahead([[maybe_unused]] const void* at) {
#if __CUDA_ARCH__ >= 900
  asm volatile("prefetch.global.L2 [%0];" : : "l"(__cvta_generic_to_global(at)) : "memory");
#endif
}

// The rest is instructions of sm_90a, which neither older nor newer devices have: for other devices
// BITNET_SM90(...) is empty.
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define BITNET_SM90(...) __VA_ARGS__
#else
#define BITNET_SM90(...)
#endif

// A barrier in shared memory (mbarrier). A phase ends when `arrivals` threads have arrived and the
// bytes that they expect, if any, are copied. The parity of phases alternates; the first has 0.
using phase_barrier = uint64_t;
__device__ inline uint32_t shared_address([[maybe_unused]] const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}
// Called by one thread, which then calls show_barriers(). Other threads use the barrier after a
// __syncthreads() that follows.
__device__ inline void begin_barrier([[maybe_unused]] phase_barrier* b,
                                     [[maybe_unused]] uint32_t arrivals) {
  BITNET_SM90(asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" : : "r"(shared_address(b)),
                           "r"(arrivals) : "memory");)
}
__device__ inline void show_barriers() {
  BITNET_SM90(asm volatile("fence.mbarrier_init.release.cluster;" :: : "memory");)
}
__device__ inline void arrive([[maybe_unused]] phase_barrier* b) {
  BITNET_SM90(asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" : : "r"(
      shared_address(b)) : "memory");)
}
// Arrives; the phase does not end before `bytes` more are copied.
__device__ inline void arrive_expecting([[maybe_unused]] phase_barrier* b,
                                        [[maybe_unused]] uint32_t bytes) {
  BITNET_SM90(asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" : : "r"(
                               shared_address(b)),
                           "r"(bytes) : "memory");)
}
// Whether the phase of that parity has ended: then the bytes that were copied for it are visible.
// The thread may sleep a little before the answer is false.
__device__ inline bool has_ended([[maybe_unused]] phase_barrier* b,
                                 [[maybe_unused]] uint32_t parity) {
  uint32_t out = 1;
  BITNET_SM90(asm volatile("{\n"
                           ".reg .pred ended;\n"
                           "mbarrier.try_wait.parity.shared::cta.b64 ended, [%1], %2;\n"
                           "selp.u32 %0, 1, 0, ended;\n"
                           "}" : "=r"(out) : "r"(shared_address(b)),
                           "r"(parity) : "memory");)
  return out != 0;
}
// Waits until it has ended. False: it had not after most_looks looks; 0 means no limit.
__device__ inline bool wait_for_phase(phase_barrier* b, uint32_t parity, uint32_t most_looks) {
  for (uint32_t looks = 1; !has_ended(b, parity); ++looks)
    if (looks == most_looks) return false;
  return true;
}
// Starts the copy of the box of `map` that begins at byte x of row y, by the device's copy engine;
// past the matrix it writes zeros. Called by one thread. The bytes count for the barrier's phase.
__device__ inline void copy_box([[maybe_unused]] void* to,
                                [[maybe_unused]] const bitnet::kernels::tensor_map& map,
                                [[maybe_unused]] uint32_t x, [[maybe_unused]] uint32_t y,
                                [[maybe_unused]] phase_barrier* b) {
  BITNET_SM90(
      asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                   "[%0], [%1, {%2, %3}], [%4];" : : "r"(shared_address(to)),
                   "l"(&map), "r"(x), "r"(y), "r"(shared_address(b)) : "memory");)
}

// c += a b (wgmma): 64 rows of a by N columns of b, of 32 signed bytes each. A warp group is four
// adjacent warps, of which the first has a number that is a multiple of four; each has 16 rows. All
// of them call it together. Between begin_batch() and the end of wait_for_batches() no thread
// touches a or c.
//   a  a lane has what it has in multiply_16x8x32
//   c  a lane has four elements for every eight columns, as in multiply_16x8x32
//   b  columns_at() of the columns: column n is 32 bytes in shared memory, in rows of 128 bytes
//      with the 128-byte swizzle, as copy_box() writes them
template <uint32_t N>
__device__ void multiply_warp_group(int (&c)[N / 2], const uint32_t (&a)[4], uint64_t b);

#define BITNET_SUMS_4(i) "+r"(c[i]), "+r"(c[(i) + 1]), "+r"(c[(i) + 2]), "+r"(c[(i) + 3])
#define BITNET_SUMS_16(i) \
  BITNET_SUMS_4(i), BITNET_SUMS_4((i) + 4), BITNET_SUMS_4((i) + 8), BITNET_SUMS_4((i) + 12)
template <>
__device__ inline void multiply_warp_group<64>([[maybe_unused]] int (&c)[32],
                                               [[maybe_unused]] const uint32_t (&a)[4],
                                               [[maybe_unused]] uint64_t b) {
  BITNET_SM90(
      asm volatile("wgmma.mma_async.sync.aligned.m64n64k32.s32.s8.s8 {"
                   "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                   "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
                   "}, {%32, %33, %34, %35}, %36, 1;" : BITNET_SUMS_16(0),
                   BITNET_SUMS_16(16) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));)
}
#define BITNET_PRODUCTS_128                                                          \
  "wgmma.mma_async.sync.aligned.m64n128k32.s32.s8.s8 {"                              \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "           \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"   \
  "}, {%64, %65, %66, %67}, %68, "
template <>
__device__ inline void multiply_warp_group<128>([[maybe_unused]] int (&c)[64],
                                                [[maybe_unused]] const uint32_t (&a)[4],
                                                [[maybe_unused]] uint64_t b) {
  BITNET_SM90(asm volatile(BITNET_PRODUCTS_128 "1;" : BITNET_SUMS_16(0), BITNET_SUMS_16(16),
                           BITNET_SUMS_16(32), BITNET_SUMS_16(48) : "r"(a[0]), "r"(a[1]), "r"(a[2]),
                           "r"(a[3]), "l"(b));)
}
// The same of 128 columns; c = a b, whatever c was.
__device__ inline void multiply_warp_group_anew([[maybe_unused]] int (&c)[64],
                                                [[maybe_unused]] const uint32_t (&a)[4],
                                                [[maybe_unused]] uint64_t b) {
  BITNET_SM90(asm volatile(BITNET_PRODUCTS_128 "0;" : BITNET_SUMS_16(0), BITNET_SUMS_16(16),
                           BITNET_SUMS_16(32), BITNET_SUMS_16(48) : "r"(a[0]), "r"(a[1]), "r"(a[2]),
                           "r"(a[3]), "l"(b));)
}
// One of both: to what c was if `adds`.
__device__ inline void multiply_warp_group_into([[maybe_unused]] int (&c)[64],
                                                [[maybe_unused]] const uint32_t (&a)[4],
                                                [[maybe_unused]] uint64_t b,
                                                [[maybe_unused]] bool adds) {
  BITNET_SM90(asm volatile("{\n"
                           ".reg .pred adds;\n"
                           "setp.ne.u32 adds, %69, 0;\n" BITNET_PRODUCTS_128 "adds;\n"
                           "}" : BITNET_SUMS_16(0),
                           BITNET_SUMS_16(16), BITNET_SUMS_16(32), BITNET_SUMS_16(48) : "r"(a[0]),
                           "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b),
                           "r"(static_cast<uint32_t>(adds)));)
}
#undef BITNET_PRODUCTS_128
#undef BITNET_SUMS_16
#undef BITNET_SUMS_4

// Sets the number of registers of each thread, a multiple of eight. All of a warp group call it.
template <uint32_t count>
__device__ void give_registers_back() {
  BITNET_SM90(asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" : : "n"(count));)
}
template <uint32_t count>
__device__ void take_registers() {
  BITNET_SM90(asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" : : "n"(count));)
}

// Called before products and after the last write to a and c.
__device__ inline void begin_batch() {
  BITNET_SM90(asm volatile("wgmma.fence.sync.aligned;" :: : "memory");)
}
// Makes a batch of the products since the last one.
__device__ inline void end_batch() {
  BITNET_SM90(asm volatile("wgmma.commit_group.sync.aligned;" :: : "memory");)
}
// Waits until all batches but the last `left` are done.
template <uint32_t left>
__device__ void wait_for_batches() {
  BITNET_SM90(asm volatile("wgmma.wait_group.sync.aligned %0;" : : "n"(left) : "memory");)
}
// The compiler computes the fragment before this point.
__device__ inline void keep_before([[maybe_unused]] uint32_t (&a)[4]) {
  asm volatile("" : "+r"(a[0]), "+r"(a[1]), "+r"(a[2]), "+r"(a[3])::"memory");
}
// The compiler moves no read of c to before this point.
template <uint32_t count>
__device__ void keep_behind([[maybe_unused]] int (&c)[count]) {
  BITNET_UNROLL
  for (uint32_t i = 0; i < count; ++i) asm volatile("" : "+r"(c[i])::"memory");
}
// The descriptor of the columns at p (PTX, "Matrix descriptor format" of wgmma): the address in
// units of 16 bytes; 1024 bytes from eight columns to the next; 128-byte swizzle.
__device__ inline uint64_t columns_at(const void* p) {
  return (shared_address(p) & 0x3ffffu) >> 4 | uint64_t{1} << 16 | uint64_t{1024 >> 4} << 32 |
         uint64_t{1} << 62;
}
// The descriptor of the columns that begin so many bytes further, a multiple of 16, within the same
// rows of 128 bytes; `columns` are at the beginning of these.
__device__ inline uint64_t next_columns(uint64_t columns, uint32_t bytes) {
  return columns | bytes / 16;
}

// Shared memory of the work group; the launch sets its size.
extern __shared__ uint4 dynamic_shared[];
__device__ inline void* shared_memory() {
  return dynamic_shared;
}

#endif

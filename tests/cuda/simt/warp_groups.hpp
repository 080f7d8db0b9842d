#pragma once
// The words of plugins/cuda/kernels/device.cuh that only sm_90 has. Copies are made when nobody can
// go on without them, and products when they are waited for, so that who reads or overwrites
// something too early finds it out. What the documents forbid ends the process.

#include <cstdint>

#include "plugins/cuda/kernels/launch.hpp"

namespace simt {

// What the stand-in's cuTensorMapEncodeTiled writes into a tensor_map.
struct boxes {
  static constexpr uint64_t written = 0x626f786573;
  uint64_t magic, address, row_bytes, rows, stride;
  uint32_t box_bytes, box_rows;
  uint32_t span;  // of the swizzle: 0, 32, 64 or 128 bytes
};

uint32_t address_of(const void* p);
void begin(uint64_t* barrier, uint32_t arrivals);
void arrive_at(uint64_t* barrier, uint32_t bytes);
void wait(uint64_t* barrier, uint32_t parity, int line);
void copy_box(void* to, const bitnet::cuda::tensor_map& map, uint32_t x, uint32_t y, uint64_t* b);
void begin_products();
void multiply(int* c, uint32_t columns, const uint32_t* a, uint64_t b);
void end_products();
void wait_for_products(uint32_t left, int line);

extern bool wrong_products;  // for tests: one sum of each is off by one

}  // namespace simt

using phase_barrier = uint64_t;
inline uint32_t shared_address(const void* p) {
  return simt::address_of(p);
}
inline void begin_barrier(phase_barrier* b, uint32_t arrivals) {
  simt::begin(b, arrivals);
}
inline void show_barriers() {}
inline void arrive(phase_barrier* b) {
  simt::arrive_at(b, 0);
}
inline void arrive_expecting(phase_barrier* b, uint32_t bytes) {
  simt::arrive_at(b, bytes);
}
inline void wait_for_phase(phase_barrier* b, uint32_t parity, int line = __builtin_LINE()) {
  simt::wait(b, parity, line);
}
inline void copy_box(void* to, const bitnet::cuda::tensor_map& map, uint32_t x, uint32_t y,
                     phase_barrier* b) {
  simt::copy_box(to, map, x, y, b);
}
template <uint32_t N>
void multiply_warp_group(int (&c)[N / 2], const uint32_t (&a)[4], uint64_t b) {
  simt::multiply(c, N, a, b);
}
inline void begin_batch() {
  simt::begin_products();
}
inline void end_batch() {
  simt::end_products();
}
template <uint32_t left>
void wait_for_batches(int line = __builtin_LINE()) {
  simt::wait_for_products(left, line);
}
template <uint32_t count>
void give_registers_back() {}
template <uint32_t count>
void take_registers() {}
inline void keep_before(uint32_t (&)[4]) {}
template <uint32_t count>
void keep_behind(int (&)[count]) {}
inline uint64_t columns_at(const void* p) {
  return (simt::address_of(p) & 0x3ffffu) >> 4 | uint64_t{1} << 16 | uint64_t{1024 >> 4} << 32 |
         uint64_t{1} << 62;
}

#pragma once
// What plugins/cuda/kernels/device.cuh has of sm_90 alone, for the CPU. Use against
// the rules of PTX ends the process: copies and products are made when they are waited for, and
// until then other numbers stand where their results will.

#include <cstdint>

namespace simt {

// What a map of boxes (tensor_map of the kernels) is here: a matrix of bytes, and boxes of it.
struct box_map {
  uint64_t magic;
  const unsigned char* from;
  uint64_t width, rows, stride;  // bytes but rows
  uint32_t box_bytes, box_rows;  // a row, and how many
  uint32_t swizzle;              // bytes whose parts of 16 are turned: 0, 32, 64 or 128
};
inline constexpr uint64_t box_magic = 0x706d2d7473657462;

// Where the group's memory begins. Devices align it to 16 bytes; pointers to it are aligned alike.
inline constexpr uint32_t first_address = 1024 + 16;

uint32_t address_in_group(const void* p, int line);
void make_barrier(uint64_t* b, uint32_t arrivals, int line);
void show_made_barriers(int line);
void come_to_barrier(uint64_t* b, uint32_t bytes, int line);
bool await_phase(uint64_t* b, uint32_t parity, bool gives_up, int line);
void copy_box_later(void* to, const void* map, uint32_t x, uint32_t y, uint64_t* b, int line);
void multiply_later(int* c, const uint32_t* a, uint64_t b, uint32_t columns, bool adds, int line);
void open_batch(int line);
void close_batch(int line);
void await_batches(uint32_t left, int line);

extern bool wrong_products;  // for tests: one sum of each is off by one
extern bool lost_boxes;      // and: no box arrives

}  // namespace simt

using phase_barrier = uint64_t;
inline uint32_t shared_address(const void* p, int line = __builtin_LINE()) {
  return simt::address_in_group(p, line);
}
inline void begin_barrier(phase_barrier* b, uint32_t arrivals, int line = __builtin_LINE()) {
  simt::make_barrier(b, arrivals, line);
}
inline void show_barriers(int line = __builtin_LINE()) {
  simt::show_made_barriers(line);
}
inline void arrive(phase_barrier* b, int line = __builtin_LINE()) {
  simt::come_to_barrier(b, 0, line);
}
inline void arrive_expecting(phase_barrier* b, uint32_t bytes, int line = __builtin_LINE()) {
  simt::come_to_barrier(b, bytes, line);
}
inline bool wait_for_phase(phase_barrier* b, uint32_t parity, uint32_t most_looks = 0,
                           int line = __builtin_LINE()) {
  return simt::await_phase(b, parity, most_looks != 0, line);
}
template <class Map>
void copy_box(void* to, const Map& map, uint32_t x, uint32_t y, phase_barrier* b,
              int line = __builtin_LINE()) {
  static_assert(sizeof(simt::box_map) <= sizeof map);
  simt::copy_box_later(to, &map, x, y, b, line);
}
template <uint32_t N>
void multiply_warp_group(int (&c)[N / 2], const uint32_t (&a)[4], uint64_t b,
                         int line = __builtin_LINE()) {
  static_assert(N == 64 || N == 128);
  simt::multiply_later(c, a, b, N, true, line);
}
inline void multiply_warp_group_into(int (&c)[64], const uint32_t (&a)[4], uint64_t b, bool adds,
                                     int line = __builtin_LINE()) {
  simt::multiply_later(c, a, b, 128, adds, line);
}
inline void multiply_warp_group_anew(int (&c)[64], const uint32_t (&a)[4], uint64_t b,
                                     int line = __builtin_LINE()) {
  simt::multiply_later(c, a, b, 128, false, line);
}
inline void begin_batch(int line = __builtin_LINE()) {
  simt::open_batch(line);
}
inline void end_batch(int line = __builtin_LINE()) {
  simt::close_batch(line);
}
template <uint32_t Left>
void wait_for_batches(int line = __builtin_LINE()) {
  static_assert(Left < 8);
  simt::await_batches(Left, line);
}
template <uint32_t Count>
void give_registers_back() {}
template <uint32_t Count>
void take_registers() {}
inline void keep_before(uint32_t (&)[4]) {}
template <uint32_t Count>
void keep_behind(int (&)[Count]) {}
inline uint64_t columns_at(const void* p, int line = __builtin_LINE()) {
  return (shared_address(p, line) & 0x3ffffu) >> 4 | uint64_t{1} << 16 | uint64_t{1024 >> 4} << 32 |
         uint64_t{1} << 62;
}
inline uint64_t next_columns(uint64_t columns, uint32_t bytes) {
  return columns | bytes / 16;
}

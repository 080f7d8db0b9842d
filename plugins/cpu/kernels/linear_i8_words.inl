// The sums of linear_i8.hpp with int16 products added in pairs: the shared text of the forms, which
// include it inside their anonymous namespace. Kernels only, no shared inline functions.
//
// Expects
//   wide           a register of `lanes` int32
//   words          a register of as many bytes
//   words codes(const uint8_t* w)           2 * lanes weights: w - 128
//   wide madd(words q, const int16_t* x)    their products with x, in pairs
//   rows_at_once, outputs_at_once           their sums fill the registers
// Gives    `multiply`, and what linear_i8_outputs.inl gives.
// Used by  linear_i8_avx2.cpp, linear_i8_avx512.cpp, linear_i8_neon.cpp, linear_i8_sse41.cpp.

#include "prefetch.inl"

// At least 8 lanes share a row of 8192: 1024 * 127 * 16256 is less than 2^31.
constexpr uint64_t parts = lanes < 8 ? 8 / lanes : 1;

inline int64_t total(const wide (&sums)[parts]) {
  int64_t sum = 0;
  for (const wide& part : sums)
    for (uint64_t i = 0; i < lanes; ++i) sum += part[i];
  return sum;
}

using octets = uint8_t __attribute__((vector_size(16)));

// Converts 64 bytes of 4-bit codes to those of int8.
inline void widen(const uint8_t* w, octets (&codes)[8]) {
  constexpr uint8_t low_half = 15, recentred = 128 - 8;
  for (uint64_t at = 0; at < 4; ++at) {
    octets pairs;
    __builtin_memcpy(&pairs, w + 16 * at, sizeof pairs);
    codes[at] = (pairs & low_half) + recentred;
    codes[at + 4] = (pairs >> 4) + recentred;
  }
}

// Adds the products of n weights, a multiple of 64, of each row with each output, from element k
// on.
template <uint64_t Rows, uint64_t Outputs>
[[gnu::always_inline]] inline void add(wide (&sums)[Rows][Outputs][parts], const uint8_t* w,
                                       uint64_t w_stride, uint64_t n, const i8_tile& a, uint64_t o,
                                       uint64_t k) {
  constexpr uint64_t step = 2 * lanes;
  for (uint64_t at = 0; at < n; at += step * parts)
    for (uint64_t p = 0; p < parts; ++p)
      for (uint64_t i = 0; i < Rows; ++i) {
        const words q = codes(w + i * w_stride + at + step * p);
        for (uint64_t j = 0; j < Outputs; ++j)
          sums[i][j][p] += madd(q, a.x + (o + j) * a.x_stride + k + at + step * p);
      }
}

// The same for outputs_at_once outputs, where products take most of the time: g++ 12 keeps the sums
// in memory unless each loop over them is unrolled explicitly and no other loop is.
template <uint64_t Rows>
[[gnu::always_inline]] inline void add(wide (&sums)[Rows][outputs_at_once][parts], const uint8_t* w,
                                       uint64_t w_stride, uint64_t n, const i8_tile& a, uint64_t o,
                                       uint64_t k) {
  static_assert(parts <= 4 && Rows <= 2 && outputs_at_once <= 4, "unrolled so often");
  constexpr uint64_t step = 2 * lanes;
  const int16_t* x = a.x + o * a.x_stride + k;
#pragma GCC unroll 1
  for (uint64_t at = 0; at < n; at += step * parts)
#pragma GCC unroll 4
    for (uint64_t p = 0; p < parts; ++p) {
      words q[Rows];
#pragma GCC unroll 2
      for (uint64_t i = 0; i < Rows; ++i) q[i] = codes(w + i * w_stride + at + step * p);
#pragma GCC unroll 4
      for (uint64_t j = 0; j < outputs_at_once; ++j)
#pragma GCC unroll 2
        for (uint64_t i = 0; i < Rows; ++i)
          sums[i][j][p] += madd(q[i], x + j * a.x_stride + at + step * p);
    }
}

template <bool FourBits, uint64_t Rows, uint64_t Outputs>
void multiply(const i8_tile& a, uint64_t r, uint64_t o) {
  const uint8_t* w = a.w + r * a.w_stride;
  wide sums[Rows][Outputs][parts] = {};
  for (uint64_t at = 0; at < a.w_stride; at += 64) {
    if (o == 0) prefetch_step<Rows, 64>(w, at / 64, a.ahead);
    if constexpr (FourBits) {
      octets wider[Rows][8];
      for (uint64_t i = 0; i < Rows; ++i) widen(w + i * a.w_stride + at, wider[i]);
      add(sums, reinterpret_cast<const uint8_t*>(wider), sizeof wider[0], 128, a, o, 2 * at);
    } else {
      add(sums, w + at, a.w_stride, 64, a, o, at);
    }
  }
#pragma GCC unroll 2
  for (uint64_t i = 0; i < Rows; ++i)
#pragma GCC unroll 4
    for (uint64_t j = 0; j < Outputs; ++j)
      a.sums[(o + j) * a.sums_stride + r + i] = total(sums[i][j]);
}

#include "linear_i8_outputs.inl"

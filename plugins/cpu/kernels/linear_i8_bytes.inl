// The sums of linear_i8.hpp with products of four bytes: the shared text of the forms with dot
// products, which include it inside their anonymous namespace. Kernels only, no shared inline
// functions.
//
// Expects
//   width                             bytes in a register
//   vec                               a register of them; zero when value-initialised
//   offset                            what codes() adds to weights of 8 bits
//   vec load(const void*)
//   vec codes(const uint8_t*)         weights and `offset`: c
//   vec dot(vec sums, vec c, vec x)   int32 sums of four neighbours' c times x
//   int32_t total(vec)
//   rows_at_once, outputs_at_once     their sums fill the registers, two for each pair
// Gives    `multiply`, and what linear_i8_outputs.inl gives.
// Used by  linear_i8_avx512vnni.cpp, linear_i8_avxvnni.cpp, linear_i8_neon_dotprod.cpp.

#include "prefetch.inl"

using octets = uint8_t __attribute__((vector_size(width)));

// Adds the products of a register of weights with each output, from element `at` on.
template <uint64_t Outputs>
[[gnu::always_inline]] inline void add(vec (&high)[Outputs], vec (&low)[Outputs], vec c,
                                       const i8_tile& a, uint64_t o, uint64_t at) {
  for (uint64_t j = 0; j < Outputs; ++j) {
    high[j] = dot(high[j], c, load(a.high + (o + j) * a.x_stride + at));
    low[j] = dot(low[j], c, load(a.low + (o + j) * a.x_stride + at));
  }
}

// sum((c - offset) x) = 128 sum(c high) + sum(c low) - offset sum(x). A single row and output uses
// two chains, each with sums of its own.
template <bool FourBits, uint64_t Rows, uint64_t Outputs>
void multiply(const i8_tile& a, uint64_t r, uint64_t o) {
  constexpr uint64_t chains = Rows * Outputs == 1 ? 2 : 1, all = chains * width;
  const uint8_t* w = a.w + r * a.w_stride;
  vec high[chains][Rows][Outputs] = {}, low[chains][Rows][Outputs] = {};
  const auto step = [&](uint64_t at, uint64_t chain) {
    for (uint64_t i = 0; i < Rows; ++i) {
      const uint8_t* bytes = w + i * a.w_stride + at;
      vec(&h)[Outputs] = high[chain][i], (&l)[Outputs] = low[chain][i];
      if constexpr (FourBits) {
        octets pairs;
        __builtin_memcpy(&pairs, bytes, sizeof pairs);
        const uint64_t near = at / 64 * 128 + at % 64;
        add(h, l, reinterpret_cast<vec>(pairs & 15), a, o, near);
        add(h, l, reinterpret_cast<vec>(pairs >> 4), a, o, near + 64);
      } else {
        add(h, l, codes(bytes), a, o, at);
      }
    }
  };
  uint64_t at = 0;
  for (; at + all <= a.w_stride; at += all) {
    if (o == 0) prefetch_step<Rows, all>(w, at / all, a.ahead);
    for (uint64_t c = 0; c < chains; ++c) step(at + c * width, c);
  }
  for (; at < a.w_stride; at += width) step(at, 0);
  for (uint64_t i = 0; i < Rows; ++i)
    for (uint64_t j = 0; j < Outputs; ++j) {
      int64_t highs = 0, lows = 0;
      for (uint64_t c = 0; c < chains; ++c) {
        highs += total(high[c][i][j]);
        lows += total(low[c][i][j]);
      }
      a.sums[(o + j) * a.sums_stride + r + i] =
          128 * highs + lows - (FourBits ? 8 : offset) * a.x_sums[o + j];
    }
}

#include "linear_i8_outputs.inl"

// The sums of linear_i8.hpp where bytes are multiplied four at a time: the one text behind the
// forms with dot products, which include it inside their anonymous namespace. Before that a form
// defines:
//   vec                               a register of `width` bytes; zero when value-initialised
//   vec load(const void*)
//   vec codes(const uint8_t*)         weights and `offset`: c
//   vec dot(vec sums, vec c, vec x)   int32 sums of four neighbours' c times x
//   int32_t total(vec)
//   rows_at_once, outputs_at_once     whose sums fill the registers, two for each pair
// Kernels only, no shared inline functions.

#include "ahead.inl"

using octets = uint8_t __attribute__((vector_size(width)));

// The products of a register of weights with those of each output, from element `at` on.
template <uint64_t Outputs>
[[gnu::always_inline]] inline void add(vec (&high)[Outputs], vec (&low)[Outputs], vec c,
                                       const i8_tile& a, uint64_t o, uint64_t at) {
  for (uint64_t j = 0; j < Outputs; ++j) {
    high[j] = dot(high[j], c, load(a.high + (o + j) * a.x_stride + at));
    low[j] = dot(low[j], c, load(a.low + (o + j) * a.x_stride + at));
  }
}

// sum((c - offset) x) = 128 sum(c high) + sum(c low) - offset sum(x).
template <bool FourBits, uint64_t Rows, uint64_t Outputs>
void multiply(const i8_tile& a, uint64_t r, uint64_t o) {
  const uint8_t* w = a.w + r * a.w_stride;
  vec high[Rows][Outputs] = {}, low[Rows][Outputs] = {};
  for (uint64_t at = 0; at < a.w_stride; at += width) {
    if (o == 0) ask_ahead<Rows, width>(w, at / width, a.ahead);
    for (uint64_t i = 0; i < Rows; ++i) {
      const uint8_t* bytes = w + i * a.w_stride + at;
      if constexpr (FourBits) {
        octets pairs;
        __builtin_memcpy(&pairs, bytes, sizeof pairs);
        const uint64_t near = at / 64 * 128 + at % 64;
        add(high[i], low[i], reinterpret_cast<vec>(pairs & 15), a, o, near);
        add(high[i], low[i], reinterpret_cast<vec>(pairs >> 4), a, o, near + 64);
      } else {
        add(high[i], low[i], codes(bytes), a, o, at);
      }
    }
  }
  for (uint64_t i = 0; i < Rows; ++i)
    for (uint64_t j = 0; j < Outputs; ++j)
      a.sums[(o + j) * a.sums_stride + r + i] = int64_t{128} * total(high[i][j]) +
                                                total(low[i][j]) -
                                                (FourBits ? 8 : offset) * a.x_sums[o + j];
}

#include "linear_i8_outputs.inl"

// The sums of linear_i8.hpp where bytes are multiplied four at a time: the one text behind the
// forms with dot products, which include it inside their anonymous namespace. Before that a form
// defines:
//   vec                               a register of `width` bytes; zero when value-initialised
//   vec load(const void*)
//   vec codes(const uint8_t*)         weights and `offset`: c
//   vec dot(vec sums, vec c, vec x)   int32 sums of four neighbours' c times x
//   int32_t total(vec)
// Kernels only, no shared inline functions.

#include "ahead.inl"

// One row after the other, so that the weights are one stream of memory (ahead.inl), of which two
// registers are asked for at a time and have sums of their own.

// sum((c - offset) x) = 128 sum(c high) + sum(c low) - offset sum(x).
inline void all(const i8_tile& a) {
  for (uint64_t r = 0; r < a.rows; ++r) {
    const uint8_t* w = a.w + r * a.w_stride;
    vec high[2] = {}, low[2] = {};
    const auto add = [&](uint64_t k, uint64_t to) {
      const vec c = codes(w + k);
      high[to] = dot(high[to], c, load(a.high + k));
      low[to] = dot(low[to], c, load(a.low + k));
    };
    uint64_t k = 0;
    for (; k + 2 * width <= a.k; k += 2 * width) {
      ask_ahead<1, 2 * width>(w, k / (2 * width), a.ahead);
      add(k, 0);
      add(k + width, 1);
    }
    if (k < a.k) add(k, 0);
    const int64_t highs = int64_t{total(high[0])} + total(high[1]);
    const int64_t lows = int64_t{total(low[0])} + total(low[1]);
    a.sums[r] = 128 * highs + lows - offset * a.x_sum;
  }
}

using octets = uint8_t __attribute__((vector_size(width)));

// The same for codes of 4 bits.
inline void all_i4(const i8_tile& a) {
  for (uint64_t r = 0; r < a.rows; ++r) {
    const uint8_t* w = a.w + r * a.w_stride;
    vec high{}, low{};
    for (uint64_t k = 0; k < a.k; k += 128)
      for (uint64_t at = 0; at < 64; at += width) {
        const uint64_t near = k + at, far = near + 64;
        ask_ahead<1, width>(w, (k / 2 + at) / width, a.ahead);
        octets pairs;
        __builtin_memcpy(&pairs, w + k / 2 + at, sizeof pairs);
        const vec first = reinterpret_cast<vec>(pairs & 15);
        const vec second = reinterpret_cast<vec>(pairs >> 4);
        high = dot(dot(high, first, load(a.high + near)), second, load(a.high + far));
        low = dot(dot(low, first, load(a.low + near)), second, load(a.low + far));
      }
    a.sums[r] = int64_t{128} * total(high) + total(low) - 8 * a.x_sum;
  }
}

// The sums of linear_i8.hpp where bytes are multiplied four at a time: the one text behind the forms
// with dot products, which include it inside their anonymous namespace. Before that a form defines
//   vec                               a register of `width` bytes; zero when value-initialised
//   vec load(const void*)
//   vec codes(const uint8_t*)         weights and `offset`: c
//   vec dot(vec sums, vec c, vec x)   int32 sums of four neighbours' c times x
//   int32_t total(vec)
// Kernels only, no shared inline functions.

#include "ahead.inl"

// sum((c - offset) x) = 128 sum(c high) + sum(c low) - offset sum(x).
template <int Rows>
void tile(const i8_tile& a, uint64_t r) {
  vec high[Rows], low[Rows];
  for (int i = 0; i < Rows; ++i) high[i] = low[i] = vec{};
  const uint8_t* w = a.w + r * a.w_stride;
  for (uint64_t k = 0; k < a.k; k += width) {
    ask_ahead<Rows, width>(w, k / width, a.ahead);
    const vec x_high = load(a.high + k), x_low = load(a.low + k);
    for (int i = 0; i < Rows; ++i) {
      const uint8_t* at = w + static_cast<uint64_t>(i) * a.w_stride + k;
      const vec c = codes(at);
      high[i] = dot(high[i], c, x_high);
      low[i] = dot(low[i], c, x_low);
    }
  }
  for (int i = 0; i < Rows; ++i)
    a.sums[r + static_cast<uint64_t>(i)] =
        int64_t{128} * total(high[i]) + total(low[i]) - offset * a.x_sum;
}

using octets = uint8_t __attribute__((vector_size(width)));

// The same for codes of 4 bits.
template <int Rows>
void tile_i4(const i8_tile& a, uint64_t r) {
  vec high[Rows], low[Rows];
  for (int i = 0; i < Rows; ++i) high[i] = low[i] = vec{};
  const uint8_t* w = a.w + r * a.w_stride;
  for (uint64_t k = 0; k < a.k; k += 128)
    for (uint64_t at = 0; at < 64; at += width) {
      const uint64_t near = k + at, far = near + 64;
      ask_ahead<Rows, width>(w, (k / 2 + at) / width, a.ahead);
      const vec high_near = load(a.high + near), high_far = load(a.high + far);
      const vec low_near = load(a.low + near), low_far = load(a.low + far);
      for (int i = 0; i < Rows; ++i) {
        const uint8_t* from = w + static_cast<uint64_t>(i) * a.w_stride + k / 2 + at;
        octets pairs;
        __builtin_memcpy(&pairs, from, sizeof pairs);
        const vec first = reinterpret_cast<vec>(pairs & 15);
        const vec second = reinterpret_cast<vec>(pairs >> 4);
        high[i] = dot(dot(high[i], first, high_near), second, high_far);
        low[i] = dot(dot(low[i], first, low_near), second, low_far);
      }
    }
  for (int i = 0; i < Rows; ++i)
    a.sums[r + static_cast<uint64_t>(i)] =
        int64_t{128} * total(high[i]) + total(low[i]) - 8 * a.x_sum;
}

inline void all(const i8_tile& a) {
  uint64_t r = 0;
  for (; r + 4 <= a.rows; r += 4) tile<4>(a, r);
  for (; r < a.rows; ++r) tile<1>(a, r);
}

inline void all_i4(const i8_tile& a) {
  uint64_t r = 0;
  for (; r + 4 <= a.rows; r += 4) tile_i4<4>(a, r);
  for (; r < a.rows; ++r) tile_i4<1>(a, r);
}

// A lane of four bytes is a row: four elements of each lane's row are multiplied by the same four
// activations. So no sum crosses lanes, and scales, sums and results of groups are registers of
// rows as well. A form includes this inside its anonymous namespace. Kernels only, no shared inline
// functions.
//
// Expects
//   lanes          of four bytes in a register: 4, 8 or 16
//   vec            a register of bytes
//   part           the accumulator of products, zero when value-initialised; it has room for 32
//                  elements of a row, even if codes break the format: 3 * -128 in each product
//   vec quarters(rows, at)                 16 bytes of rows 0, 4, 8, 12 (as far as there are lanes)
//   vec low_words(a, b), high_words(a, b)  in each 16 bytes: a0 b0 a1 b1, a2 b2 a3 b3
//   vec low_pairs(a, b), high_pairs(a, b)  in each 16 bytes: a01 b01, a23 b23
//   vec broadcast(const int8_t* q)         four activations in each lane
//   part dot(part, vec codes, vec q)       the part and the products
//   wide widen(part)                       the sum of each lane
// Gives    the vector types `bytes`, `words`, `wide` and `floats`; `packed_group`, `load`,
//          `load_columns`.
// Used by  linear_grouped_vector.inl, linear_panel_vector.inl.

using bytes = uint8_t __attribute__((vector_size(4 * lanes)));
using words = uint16_t __attribute__((vector_size(4 * lanes)));
using wide = int32_t __attribute__((vector_size(4 * lanes)));
using floats = float __attribute__((vector_size(4 * lanes)));

constexpr uint64_t packed_group = 32;  // bytes, of 128 elements

template <class T>
inline T load(const void* from) {
  T v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

// 16 bytes of every row: lane i of register j has bytes 4 j to 4 j + 3 of row i.
inline void load_columns(const uint8_t* const* rows, uint64_t at, vec (&out)[4]) {
  const vec a = quarters(rows, at), b = quarters(rows + 1, at);
  const vec c = quarters(rows + 2, at), d = quarters(rows + 3, at);
  const vec ab = low_words(a, b), cd = low_words(c, d);
  out[0] = low_pairs(ab, cd);
  out[1] = high_pairs(ab, cd);
  const vec more_ab = high_words(a, b), more_cd = high_words(c, d);
  out[2] = low_pairs(more_ab, more_cd);
  out[3] = high_pairs(more_ab, more_cd);
}

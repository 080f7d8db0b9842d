// All rows and outputs of linear_i8.hpp, in the namespace of the form that includes it. A single
// output takes one row after the other, so that the weights are one stream of memory
// (prefetch.inl). Several outputs share the loads of a few rows; their activations stay in the
// first-level cache while all rows of the tile pass by. The first outputs prefetch the rows.
//
// Expects
//   multiply<FourBits, Rows, Outputs>(const i8_tile&, first row, first output)
//   rows_at_once, outputs_at_once
// Gives    `multiply_tile`: a tile of linear_i8.hpp.
// Used by  linear_i8_bytes.inl, linear_i8_words.inl.

template <bool FourBits, uint64_t Outputs>
inline void all_rows(const i8_tile& a, uint64_t o) {
  constexpr uint64_t together = Outputs == 1 ? 1 : rows_at_once;
  uint64_t r = 0;
  for (; r + together <= a.rows; r += together) multiply<FourBits, together, Outputs>(a, r, o);
  for (; r < a.rows; ++r) multiply<FourBits, 1, Outputs>(a, r, o);
}

template <bool FourBits>
inline void multiply_tile(const i8_tile& a) {
  uint64_t o = 0;
  for (; o + outputs_at_once <= a.outputs; o += outputs_at_once)
    all_rows<FourBits, outputs_at_once>(a, o);
  if constexpr (outputs_at_once > 2)
    for (; o + 2 <= a.outputs; o += 2) all_rows<FourBits, 2>(a, o);
  for (; o < a.outputs; ++o) all_rows<FourBits, 1>(a, o);
}

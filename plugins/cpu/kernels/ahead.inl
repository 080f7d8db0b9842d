// Asking for weights before they are used, in the namespace of the form that includes it.
//
// Lines are asked for in the order in which they lie, not in that of their use: the processor goes
// on from there by itself. Rows side by side, each a line at a time, came a fifth slower
// (docs/explain/kernel-ladder.md).

// Step `step` of a tile of rows that follow each other, which uses Bytes of each.
template <int Rows, uint64_t Bytes>
inline void ask_ahead(const uint8_t* tile, uint64_t step, uint64_t ahead) {
  constexpr uint64_t all = Rows * Bytes;
  const uint8_t* from = tile + ahead + step * all;
  for (uint64_t at = 0; at < all; at += 64) __builtin_prefetch(from + at, 0, 3);
}

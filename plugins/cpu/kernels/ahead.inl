// Asking for weights before they are used, in the namespace of the form that includes it.
//
// Lines are asked for in the order in which they lie, not in that of their use: the processor goes
// on from there by itself. Rows side by side, each a line at a time, came a fifth slower
// (docs/explain/kernel-ladder.md).

// What is asked for from further away than a page goes to the second cache: of lines on their way
// to the first there are few at a time, and while products are computed no others are asked for.

inline void ask_for(const uint8_t* line, uint64_t ahead) {
  if (ahead > 4096)
    __builtin_prefetch(line, 0, 2);
  else
    __builtin_prefetch(line, 0, 3);
}

// Step `step` of a tile of rows that follow each other, which uses Bytes of each.
template <int Rows, uint64_t Bytes>
inline void ask_ahead(const uint8_t* tile, uint64_t step, uint64_t ahead) {
  constexpr uint64_t all = Rows * Bytes;
  const uint8_t* from = tile + ahead + step * all;
  for (uint64_t at = 0; at < all; at += 64) ask_for(from + at, ahead);
}

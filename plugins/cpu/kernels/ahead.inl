// Asking for weights before they are used, in the namespace of the form that includes it.
//
// Lines are asked for in the order in which they lie, not in that of their use: the processor goes
// on from there by itself. Rows side by side, each a line at a time, came a fifth slower
// (docs/explain/kernel-ladder.md).
//
// Expects  <cstdint>; no name of the form.
// Gives    `ask_for`, `ask_ahead`, `lines_to_come`.

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

// Several passes over the same rows, with some tokens each, multiply for longer than the memory
// takes to deliver them. So each pass asks for a part of the rows that come next, in their order:
// they arrive evenly over all of the time.
struct lines_to_come {
  const uint8_t* at;  // the next line
  uint64_t each;      // bytes that are multiplied for each line that is asked for
  uint64_t due = 0;   // bytes that were multiplied since the last one

  // `bytes` of rows are read by each pass; those that come next begin at `next`.
  lines_to_come(const uint8_t* next, uint64_t bytes, uint64_t pass, uint64_t passes)
      : at(next + bytes / passes * pass / 64 * 64), each(64 * passes) {}

  // So many more bytes are multiplied.
  [[gnu::always_inline]] void ask(uint64_t bytes) {
    for (due += bytes; due >= each; due -= each, at += 64) __builtin_prefetch(at, 0, 2);
  }
};

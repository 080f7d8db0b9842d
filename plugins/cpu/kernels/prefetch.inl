// Prefetches weights, in the namespace of the form that includes it.
//
// Lines are prefetched in the order of their addresses, not of their use, so that the hardware
// prefetcher continues. Prefetching one line of each of several rows was a fifth slower
// (docs/explain/kernel-ladder.md).
//
// Expects  <cstdint>; no name of the form.
// Gives    `prefetch_line`, `prefetch_step`, `paced_prefetch`.
// Used by  linear_fives_avx512vbmi.cpp, linear_grouped_vector.inl, linear_i6_vector.inl,
//          linear_i8_bytes.inl, linear_i8_words.inl, linear_ternary_avx512vnni.cpp,
//          linear_ternary_vector.inl.

// Lines more than a page ahead go to the second-level cache: few lines at a time can be on their
// way to the first, and none is requested while products are computed.

inline void prefetch_line(const uint8_t* line, uint64_t ahead) {
  if (ahead > 4096)
    __builtin_prefetch(line, 0, 2);
  else
    __builtin_prefetch(line, 0, 3);
}

// Step `step` of a tile of adjacent rows. A step uses Bytes of each row.
template <int Rows, uint64_t Bytes>
inline void prefetch_step(const uint8_t* tile, uint64_t step, uint64_t ahead) {
  constexpr uint64_t all = Rows * Bytes;
  const uint8_t* from = tile + ahead + step * all;
  for (uint64_t at = 0; at < all; at += 64) prefetch_line(from + at, ahead);
}

// Several passes over the same rows, with some tokens each, compute for longer than the memory
// takes to deliver the rows. So each pass prefetches a part of the following rows, in their order,
// spread evenly over the pass.
struct paced_prefetch {
  const uint8_t* at;  // the next line
  uint64_t each;      // bytes multiplied per prefetched line
  uint64_t due = 0;   // bytes multiplied since the last prefetch

  // Each pass reads `bytes` of rows; the following rows begin at `next`.
  paced_prefetch(const uint8_t* next, uint64_t bytes, uint64_t pass, uint64_t passes)
      : at(next + bytes / passes * pass / 64 * 64), each(64 * passes) {}

  // Counts `bytes` that are multiplied next, and prefetches the lines due.
  [[gnu::always_inline]] void count(uint64_t bytes) {
    for (due += bytes; due >= each; due -= each, at += 64) __builtin_prefetch(at, 0, 2);
  }
};

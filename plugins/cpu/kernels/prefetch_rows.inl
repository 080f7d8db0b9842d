// Prefetches rows, in the namespace of the form that includes it. KV blocks lie anywhere, so the
// hardware prefetcher does not predict them.
//
// Expects  <cstdint>; no name of the form.
// Gives    `rows_ahead`, `prefetch`, `prefetch_later`.
// Used by  linear_dense_avx*.cpp, linear_dense_vector.inl.

constexpr uint64_t rows_ahead = 32;

// Prefetches n of `rows` from row r on, or, after their end, of the rows that are read next. Rows
// have no gaps between them.
inline void prefetch(const uint8_t* rows, const uint8_t* next, uint64_t count, uint64_t r,
                     uint64_t n, uint64_t row_bytes) {
  const uint8_t* from = r < count ? rows + r * row_bytes : next + (r - count) * row_bytes;
  for (uint64_t at = 0; at < n * row_bytes; at += 64) __builtin_prefetch(from + at, 0, 3);
}

// Step `step` of `steps` over n rows from row r on: prefetches a part of the same number of rows of
// `later` into the second-level cache.
inline void prefetch_later(const uint8_t* later, uint64_t row_bytes, uint64_t r, uint64_t n,
                           uint64_t step, uint64_t steps) {
  const uint64_t part = n * row_bytes / steps;
  const uint8_t* from = later + r * row_bytes + step * part;
  for (uint64_t at = 0; at < part; at += 64) __builtin_prefetch(from + at, 0, 2);
}

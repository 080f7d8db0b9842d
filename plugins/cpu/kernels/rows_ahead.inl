// Asking for rows before they are used, in the namespace of the form that includes it: blocks of KV
// lie anywhere, so that the processor does not see them coming.

constexpr uint64_t rows_ahead = 32;

// Asks for n of `rows` from row r on, or, where they end, of those that are read next; no row is
// followed by a gap.
inline void fetch(const uint8_t* rows, const uint8_t* next, uint64_t count, uint64_t r, uint64_t n,
                  uint64_t row_bytes) {
  const uint8_t* from = r < count ? rows + r * row_bytes : next + (r - count) * row_bytes;
  for (uint64_t at = 0; at < n * row_bytes; at += 64) __builtin_prefetch(from + at, 0, 3);
}

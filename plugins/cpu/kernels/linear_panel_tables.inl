// The products of linear_panel.hpp for many tokens and rows of one scale, looked up in tables (the
// method of four Russians). A form with AVX2 or AVX-512 includes this after
// linear_panel_vector.inl.
//
// Expects  `load`, `packed_group`, `least` and `multiply_tile` of that file and lanes.inl;
//          panel_tile, panel_room_bytes and fewest_table_rows of linear_panel.hpp; <immintrin.h>,
//          <cstring>.
// Gives    `look_up_or_multiply`: a tile of linear_panel.hpp.
// Used by  linear_panel_avx*.cpp.
//
// Four weights have 81 values, so four activations have 81 sums, and a row needs one of them. All
// are computed once, by one addition each; then a row takes one addition instead of four products.
// A lane is a token here: an entry of a table is a register, with the sums of 16 or 32 tokens in
// int16. The tables of 32 elements stay (nearly) in the first-level cache while all rows pass by;
// the sums are in the second-level cache.
//
// The four elements of a table are those of a byte of weights, 32 apart. A row finds its entries by
// byte offsets, computed once for all tokens.
//
// Kernels only, no shared inline functions.

using entry_of_16 = int16_t __attribute__((vector_size(32)));
using entry_of_32 = int16_t __attribute__((vector_size(64)));
template <class Entry>
constexpr uint64_t tokens_of = sizeof(Entry) / 2;

constexpr uint64_t entries = 81, tables_at_once = 8;
// Elements whose sum fits int16, unless every activation is -128. Half as many always fit.
constexpr uint64_t part_of_row = 256, passes_of_part = part_of_row / (4 * tables_at_once);
// Rows and tokens at a time, tuned on Zen 4 (2026-11-25): the 500 KB below stay in the second-level
// cache. Making tables costs as much as 90 rows.
constexpr uint64_t rows_at_once = 1152, tokens_at_once = 64;
// Prefetch distance in rows: hardware prefetchers do not predict such strides.
constexpr uint64_t rows_ahead = 48;
// With fewer tokens of an entry, tables do not pay.
constexpr uint64_t fewest_of_entry = 8;

template <class Entry>
struct table_room {
  alignas(64) Entry tables[tables_at_once][entries];
  Entry activations[part_of_row];
  Entry sums[rows_at_once];
  // One line more: else a row of all passes would map to one set of the first-level cache.
  uint16_t offsets[passes_of_part][rows_at_once + 4][tables_at_once];
  alignas(64) int32_t totals[tokens_at_once / tokens_of<Entry>][rows_at_once][tokens_of<Entry>];
};

// The offsets of 128 elements of a row, 8 for each of four passes. Returns a value that is not 0 if
// a code is 3.
template <class Entry>
[[gnu::always_inline]] inline __m256i find_offsets_of(const uint8_t* from, uint16_t* to,
                                                      __m256i high, __m256i low) {
  constexpr int back = sizeof(Entry) == 32 ? 3 : 2;
  static_assert(sizeof(Entry) == 256 >> back);
  const __m256i nibble = _mm256_set1_epi8(15), none{};
  const auto codes = load<__m256i>(from);
  const __m256i at = _mm256_add_epi8(
      _mm256_shuffle_epi8(high, _mm256_and_si256(_mm256_srli_epi16(codes, 4), nibble)),
      _mm256_shuffle_epi8(low, _mm256_and_si256(codes, nibble)));
  // Entry numbers times 256, in the halves of each half.
  const __m256i even = _mm256_srli_epi16(_mm256_unpacklo_epi8(none, at), back);
  const __m256i odd = _mm256_srli_epi16(_mm256_unpackhi_epi8(none, at), back);
  constexpr uint64_t pass = sizeof(table_room<Entry>::offsets[0]) / sizeof(uint16_t);
  const __m128i passes[] = {_mm256_castsi256_si128(even), _mm256_castsi256_si128(odd),
                            _mm256_extracti128_si256(even, 1), _mm256_extracti128_si256(odd, 1)};
#pragma GCC unroll 4
  for (uint64_t i = 0; i < 4; ++i) std::memcpy(to + i * pass, &passes[i], sizeof passes[i]);
  return _mm256_and_si256(codes, _mm256_srli_epi16(codes, 1));
}

// The offsets of n elements, a multiple of 128, of all rows. Returns false if a code is 3, which
// has no entry.
template <class Entry>
inline bool find_offsets(const uint8_t* w, uint64_t stride, uint64_t rows, uint64_t n,
                         table_room<Entry>& room) {
  const __m256i high = _mm256_setr_epi8(0, 9, 18, 0, 27, 36, 45, 0, 54, 63, 72, 0, 0, 0, 0, 0,  //
                                    0, 9, 18, 0, 27, 36, 45, 0, 54, 63, 72, 0, 0, 0, 0, 0);
  const __m256i low = _mm256_setr_epi8(0, 1, 2, 0, 3, 4, 5, 0, 6, 7, 8, 0, 0, 0, 0, 0,  //
                                   0, 1, 2, 0, 3, 4, 5, 0, 6, 7, 8, 0, 0, 0, 0, 0);
  static_assert(part_of_row == 256);
  const uint64_t ahead = rows_ahead * stride;
  uint16_t *to = room.offsets[0][0], *other = room.offsets[passes_of_part / 2][0];
  __m256i threes{};
  for (uint64_t r = 0; r < rows; ++r, w += stride, to += tables_at_once, other += tables_at_once) {
    __builtin_prefetch(w + ahead);
    threes |= find_offsets_of<Entry>(w, to, high, low);
    if (n != part_of_row) continue;
    __builtin_prefetch(w + packed_group + ahead);  // rows of files begin in the middle of lines
    threes |= find_offsets_of<Entry>(w + packed_group, other, high, low);
  }
  return _mm256_testz_si256(threes, _mm256_set1_epi8(0x55)) != 0;
}

// Transposes n activations of at most an entry's tokens, a token to a lane; missing ones are 0, up
// to a multiple of 128.
template <class Entry>
inline void turn_activations(const int8_t* q, uint64_t stride, uint64_t tokens, uint64_t n,
                             Entry* to) {
  auto* out = reinterpret_cast<uint8_t*>(to);
  for (uint64_t first = 0; first < tokens_of<Entry>; first += 16, q += 16 * stride, out += 32)
    for (uint64_t e = 0; e < (n + 127) / 128 * 128; e += 16) {
      __m128i rows[16] = {};
      for (uint64_t t = 0; first + t < tokens && t < 16 && e < n; ++t)
        if (e + 16 <= n)
          std::memcpy(&rows[t], q + t * stride + e, 16);
        else
          std::memcpy(&rows[t], q + t * stride + e, n - e);
      for (int step = 0; step < 4; ++step) {
        __m128i next[16];
        for (uint64_t i = 0; i < 8; ++i) {
          next[2 * i] = _mm_unpacklo_epi8(rows[i], rows[i + 8]);
          next[2 * i + 1] = _mm_unpackhi_epi8(rows[i], rows[i + 8]);
        }
        std::memcpy(rows, next, sizeof rows);
      }
      for (uint64_t i = 0; i < 16; ++i) {
        const __m256i all = _mm256_cvtepi8_epi16(rows[i]);
        std::memcpy(out + (e + i) * sizeof(Entry), &all, sizeof all);
      }
    }
}

// Makes the tables of a pass: table j is of elements j, j + 32, j + 64 and j + 96.
template <class Entry>
inline void make_tables(const Entry* x, Entry (&tables)[tables_at_once][entries]) {
  for (uint64_t j = 0; j < tables_at_once; ++j) {
    Entry* to = tables[j];
    const Entry a = x[j], b = x[j + 32], c = x[j + 64], d = x[j + 96];
    Entry with_a = -a - b - c - d;
    for (int i = 0; i < 3; ++i, with_a += a) {
      Entry with_b = with_a;
      for (int k = 0; k < 3; ++k, with_b += b) {
        Entry with_c = with_b;
        for (int l = 0; l < 3; ++l, with_c += c, to += 3) {
          to[0] = with_c;
          to[1] = with_c + d;
          to[2] = to[1] + d;
        }
      }
    }
  }
}

// `Begins`: overwrites the totals.
template <bool Begins>
inline void add_to(int32_t* totals, entry_of_16 sum) {
  const auto all = reinterpret_cast<__m256i>(sum);
  const __m256i halves[] = {_mm256_cvtepi16_epi32(_mm256_castsi256_si128(all)),
                            _mm256_cvtepi16_epi32(_mm256_extracti128_si256(all, 1))};
  for (uint64_t i = 0; i < 2; ++i) {
    const __m256i before = Begins ? __m256i{} : load<__m256i>(totals + 8 * i);
    const __m256i after = _mm256_add_epi32(before, halves[i]);
    std::memcpy(totals + 8 * i, &after, sizeof after);
  }
}
#ifdef __AVX512BW__
template <bool Begins>
inline void add_to(int32_t* totals, entry_of_32 sum) {
  const auto all = reinterpret_cast<__m512i>(sum);
  const __m512i halves[] = {_mm512_cvtepi16_epi32(_mm512_castsi512_si256(all)),
                            _mm512_cvtepi16_epi32(_mm512_extracti64x4_epi64(all, 1))};
  for (uint64_t i = 0; i < 2; ++i) {
    const __m512i before = Begins ? __m512i{} : load<__m512i>(totals + 16 * i);
    const __m512i after = _mm512_add_epi32(before, halves[i]);
    std::memcpy(totals + 16 * i, &after, sizeof after);
  }
}
#endif

// Destination of a pass's sums: kept for the next pass, stored as new totals, or added to the
// totals.
enum class into : uint8_t { sums, new_totals, totals };

// One pass over all rows. `First`: sums begin here. Inlined by g++ 12 it is 5 % slower.
template <bool First, into To, class Entry>
[[gnu::noinline]] void look_up(const table_room<Entry>& room,
                               const uint16_t (*offsets)[tables_at_once], uint64_t rows,
                               Entry* sums, int32_t (*totals)[tokens_of<Entry>]) {
  const auto* tables = reinterpret_cast<const uint8_t*>(room.tables);
  for (uint64_t r = 0; r < rows; ++r) {
    Entry sum{};
    if constexpr (!First) sum = sums[r];
    for (uint64_t j = 0; j < tables_at_once; j += 4) {
      auto four = load<uint64_t>(offsets[r] + j);
      for (uint64_t i = 0; i < 4; ++i, four >>= 16)
        sum += load<Entry>(tables + (j + i) * sizeof(room.tables[0]) + (four & 0xffff));
    }
    if constexpr (To == into::sums)
      sums[r] = sum;
    else
      add_to<To == into::new_totals>(totals[r], sum);
  }
}

template <class Entry>
inline bool has_lowest(const Entry& x) {
  __m256i lowest{};
  for (uint64_t i = 0; i < sizeof(Entry) / 32; ++i)
    lowest |= _mm256_cmpeq_epi16(load<__m256i>(reinterpret_cast<const uint8_t*>(&x) + 32 * i),
                                 _mm256_set1_epi16(-128));
  return _mm256_testz_si256(lowest, lowest) == 0;
}

// A part of all rows: n elements of at most an entry's tokens. `begins`: totals begin here, too.
template <class Entry>
inline void add_part_of_rows(table_room<Entry>& room, const int8_t* q, uint64_t stride,
                             uint64_t tokens, uint64_t n, uint64_t rows, bool begins,
                             int32_t (*totals)[tokens_of<Entry>]) {
  turn_activations(q, stride, tokens, n, room.activations);
  const uint64_t together = has_lowest(room.activations[0]) ? passes_of_part / 2 : passes_of_part;
  const uint64_t passes = (n + 127) / 128 * 4;
  for (uint64_t p = 0; p < passes; ++p) {
    make_tables(room.activations + p / 4 * 128 + p % 4 * tables_at_once, room.tables);
    if (p % together == 0)
      look_up<true, into::sums>(room, room.offsets[p], rows, room.sums, totals);
    else if ((p + 1) % together != 0 && p + 1 != passes)
      look_up<false, into::sums>(room, room.offsets[p], rows, room.sums, totals);
    else if (begins && p < together)
      look_up<false, into::new_totals>(room, room.offsets[p], rows, room.sums, totals);
    else
      look_up<false, into::totals>(room, room.offsets[p], rows, room.sums, totals);
  }
}

using eight_floats = float __attribute__((vector_size(32)));
using eight_sums = int32_t __attribute__((vector_size(32)));

// Transposes eight rows of eight tokens.
inline void turn_floats(eight_floats (&x)[8]) {
  eight_floats a[8], b[8];
  for (uint64_t i = 0; i < 8; i += 2) {
    a[i] = _mm256_unpacklo_ps(x[i], x[i + 1]);
    a[i + 1] = _mm256_unpackhi_ps(x[i], x[i + 1]);
  }
  for (uint64_t i = 0; i < 8; i += 4)
    for (uint64_t j = 0; j < 2; ++j) {
      b[i + 2 * j] = _mm256_shuffle_ps(a[i + j], a[i + j + 2], 0x44);
      b[i + 2 * j + 1] = _mm256_shuffle_ps(a[i + j], a[i + j + 2], 0xee);
    }
  for (uint64_t i = 0; i < 4; ++i) {
    x[i] = _mm256_permute2f128_ps(b[i], b[i + 4], 0x20);
    x[i + 4] = _mm256_permute2f128_ps(b[i], b[i + 4], 0x31);
  }
}

// n rows, at most 8, from `row` on, of at most eight tokens; `y` is the place of the first of both.
[[gnu::always_inline]] inline void write_eight_rows(const panel_tile& a, uint64_t row, uint64_t n,
                                                    uint64_t tokens, eight_floats scale,
                                                    const int32_t* totals, uint64_t stride,
                                                    float* y) {
  eight_floats out[8] = {};
#pragma GCC unroll 8
  for (uint64_t i = 0; i < 8; ++i) {
    if (i == n) break;
    const eight_floats sum =
        __builtin_convertvector(load<eight_sums>(totals + i * stride), eight_floats);
    const float of_row = a.scales[a.one_scale ? 0 : row + i];
    out[i] = a.one_scale ? sum / scale * of_row : (eight_floats{} + sum * of_row) / scale;
  }
  turn_floats(out);
  for (uint64_t i = 0; i < tokens; ++i)
    std::memcpy(y + i * a.y_stride, &out[i], n * sizeof(float));
}

// Rows of at most eight tokens from t on; `totals` begin at the first of them.
inline void write_totals(const panel_tile& a, uint64_t row, uint64_t rows, uint64_t t,
                         uint64_t tokens, const int32_t* totals, uint64_t stride) {
  eight_floats scale = eight_floats{} + 1;
  for (uint64_t i = 0; i < tokens; ++i) scale[i] = a.q_scales[(t + i) * a.q_scales_stride];
  float* y = a.y + t * a.y_stride + row;
  // Nearly all rows, in loops with constant bounds.
  for (; rows >= 8 && tokens == 8; rows -= 8, row += 8, totals += 8 * stride, y += 8)
    write_eight_rows(a, row, 8, 8, scale, totals, stride, y);
  for (; rows != 0; totals += 8 * stride, y += 8) {
    const uint64_t n = least(rows, 8);
    write_eight_rows(a, row, n, tokens, scale, totals, stride, y);
    rows -= n, row += n;
  }
}

// Tokens [t0, end), at most tokens_at_once, of at most rows_at_once rows. False: a code is 3.
template <class Entry>
inline bool look_up_rows(const panel_tile& a, uint64_t row, uint64_t rows, uint64_t t0,
                         uint64_t end, table_room<Entry>& room) {
  constexpr uint64_t each = tokens_of<Entry>;
  for (uint64_t e = 0; e < a.k; e += part_of_row) {
    const uint64_t n = least(a.k - e, part_of_row);
    if (!find_offsets(a.w + row * a.w_stride + e / 4, a.w_stride, rows, (n + 127) / 128 * 128,
                      room))
      return false;
    for (uint64_t t = t0; t < end; t += each)
      add_part_of_rows(room, a.q + t * a.q_stride + e, a.q_stride, least(end - t, each), n, rows,
                       e == 0, room.totals[(t - t0) / each]);
  }
  for (uint64_t t = t0; t < end; t += 8)
    write_totals(a, row, rows, t, least(end - t, 8),
                 &room.totals[(t - t0) / each][0][(t - t0) % each], each);
  return true;
}

// Tokens [from, end). False: a code is 3, and y is undefined.
template <class Entry>
[[gnu::noinline]] bool look_up_tokens(const panel_tile& a, uint64_t from, uint64_t end) {
  static_assert(sizeof(table_room<Entry>) <= panel_room_bytes);
  table_room<Entry>& room = *static_cast<table_room<Entry>*>(a.room);
  const uint64_t blocks = (a.rows + rows_at_once - 1) / rows_at_once;
  const uint64_t each = (a.rows + blocks - 1) / blocks;
  for (uint64_t row = 0; row < a.rows; row += each)
    for (uint64_t t = from; t < end; t += tokens_at_once)
      if (!look_up_rows(a, row, least(a.rows - row, each), t, least(end, t + tokens_at_once), room))
        return false;
  return true;
}

// Returns how many tokens, from the first on, are done. Panels take tokens that fill less than half
// an entry, and products that tables do not support.
inline uint64_t tokens_looked_up(const panel_tile& a) {
  if (a.group != 0 || a.q_group != 0 || a.goes_on || !a.ends || a.rows < fewest_table_rows) return 0;
  uint64_t done = 0;
#ifdef __AVX512BW__
  done = a.tokens / tokens_of<entry_of_32> * tokens_of<entry_of_32>;
  if (a.tokens - done > tokens_of<entry_of_32> - fewest_of_entry) done = a.tokens;
  if (done != 0 && !look_up_tokens<entry_of_32>(a, 0, done)) return 0;
#endif
  const uint64_t rest = (a.tokens - done) % tokens_of<entry_of_16>;
  const uint64_t end = rest < fewest_of_entry ? a.tokens - rest : a.tokens;
  return done == end || look_up_tokens<entry_of_16>(a, done, end) ? end : 0;
}

inline void look_up_or_multiply(const panel_tile& a) {
  const uint64_t done = tokens_looked_up(a);
  if (done == a.tokens) return;
  panel_tile rest = a;
  rest.q += done * a.q_stride;
  rest.q_scales += done * a.q_scales_stride;
  rest.y += done * a.y_stride;
  rest.tokens -= done;
  multiply_tile(rest);
}

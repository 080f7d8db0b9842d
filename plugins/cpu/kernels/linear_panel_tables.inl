// The products of linear_panel.hpp for many tokens and rows of one scale where multiplying bytes is
// slow: sums are looked up (the method of four Russians). A form with AVX2 includes this behind
// linear_panel_vector.inl.
//
// Four weights have 81 values. So of four activations there are 81 sums, each needed by a row in
// 81: they are made once, by one addition each, and then a row takes one addition where it had four
// products. A lane is a token here: an entry of a table is a sum of 16 tokens in int16. Tables of
// 32 elements stay in the first cache while all rows pass by, and what they add to is in the
// second.
//
// The four elements of a table are those of a byte of weights, 32 apart. A row knows its entries by
// their offsets in bytes, made once for all tokens.
//
// Kernels only, no shared inline functions.

constexpr uint64_t tokens_of_entry = 16, entries = 81, tables_at_once = 8;
// Elements whose sum fits into int16, if not every activation is -128. Of half as many it always
// does.
constexpr uint64_t part_of_row = 256, passes_of_part = part_of_row / (4 * tables_at_once);
// Rows and tokens at a time, tuned on Zen 4 (2026-11-25): 500 KB of what follows stay in the second
// cache. Making tables costs as much as 90 rows.
constexpr uint64_t rows_at_once = 1152, tokens_at_once = 64;
// Fewer rows do not pay, and neither do fewer tokens of an entry.
constexpr uint64_t fewest_rows = 256, fewest_of_entry = 8;

using entry = int16_t __attribute__((vector_size(32)));

struct table_room {
  alignas(64) entry tables[tables_at_once][entries];
  entry activations[part_of_row];
  entry sums[rows_at_once];
  // A line more, or the same rows of all passes would share their place in the first cache.
  uint16_t offsets[passes_of_part][rows_at_once + 4][tables_at_once];
  wide totals[tokens_at_once / tokens_of_entry][rows_at_once][2];
};

// The offsets of n elements, a multiple of 128, of all rows. False: a code is 3, which no table
// has.
inline bool find_offsets(const uint8_t* w, uint64_t stride, uint64_t rows, uint64_t n,
                         table_room& room) {
  const vec high = _mm256_setr_epi8(0, 9, 18, 0, 27, 36, 45, 0, 54, 63, 72, 0, 0, 0, 0, 0,  //
                                    0, 9, 18, 0, 27, 36, 45, 0, 54, 63, 72, 0, 0, 0, 0, 0);
  const vec low = _mm256_setr_epi8(0, 1, 2, 0, 3, 4, 5, 0, 6, 7, 8, 0, 0, 0, 0, 0,  //
                                   0, 1, 2, 0, 3, 4, 5, 0, 6, 7, 8, 0, 0, 0, 0, 0);
  const vec nibble = _mm256_set1_epi8(15);
  constexpr int shift = 5;
  static_assert(sizeof(entry) == 1 << shift);
  vec threes{};
  for (uint64_t r = 0; r < rows; ++r)
    for (uint64_t g = 0; g < n / 128; ++g) {
      const uint8_t* from = w + r * stride + g * packed_group;
      const vec codes = load<vec>(from);
      __builtin_prefetch(from + 8 * stride);  // no processor guesses such steps
      threes |= codes & _mm256_srli_epi16(codes, 1);
      const vec at = _mm256_add_epi8(
          _mm256_shuffle_epi8(high, _mm256_and_si256(_mm256_srli_epi16(codes, 4), nibble)),
          _mm256_shuffle_epi8(low, _mm256_and_si256(codes, nibble)));
      const vec halves[] = {
          _mm256_slli_epi16(_mm256_cvtepu8_epi16(_mm256_castsi256_si128(at)), shift),
          _mm256_slli_epi16(_mm256_cvtepu8_epi16(_mm256_extracti128_si256(at, 1)), shift)};
      for (uint64_t i = 0; i < 4; ++i) {
        const __m128i eight = i % 2 == 0 ? _mm256_castsi256_si128(halves[i / 2])
                                         : _mm256_extracti128_si256(halves[i / 2], 1);
        std::memcpy(room.offsets[4 * g + i][r], &eight, sizeof eight);
      }
    }
  return _mm256_testz_si256(threes, _mm256_set1_epi8(0x55)) != 0;
}

// n activations of up to 16 tokens, a token to a lane; 0 where there are none, up to a multiple of
// 128.
inline void turn_activations(const int8_t* q, uint64_t stride, uint64_t tokens, uint64_t n,
                             entry* to) {
  for (uint64_t e = 0; e < (n + 127) / 128 * 128; e += 16) {
    __m128i rows[16] = {};
    for (uint64_t t = 0; t < tokens && e < n; ++t)
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
    for (uint64_t i = 0; i < 16; ++i)
      to[e + i] = reinterpret_cast<entry>(_mm256_cvtepi8_epi16(rows[i]));
  }
}

// Of the activations of a pass: table j is of elements j, j + 32, j + 64 and j + 96.
inline void make_tables(const entry* x, entry (&tables)[tables_at_once][entries]) {
  for (uint64_t j = 0; j < tables_at_once; ++j) {
    entry* to = tables[j];
    const entry a = x[j], b = x[j + 32], c = x[j + 64], d = x[j + 96];
    entry with_a = -a - b - c - d;
    for (int i = 0; i < 3; ++i, with_a += a) {
      entry with_b = with_a;
      for (int k = 0; k < 3; ++k, with_b += b) {
        entry with_c = with_b;
        for (int l = 0; l < 3; ++l, with_c += c, to += 3) {
          to[0] = with_c;
          to[1] = with_c + d;
          to[2] = to[1] + d;
        }
      }
    }
  }
}

// One pass of all rows. `First`: sums begin here; `Last`: they go into the totals. Inlined, g++ 12
// makes it 5 % slower.
template <bool First, bool Last>
[[gnu::noinline]] void look_up(const table_room& room, const uint16_t (*offsets)[tables_at_once],
                               uint64_t rows, entry* sums, wide (*totals)[2]) {
  const auto* tables = reinterpret_cast<const uint8_t*>(room.tables);
  for (uint64_t r = 0; r < rows; ++r) {
    entry sum{};
    if constexpr (!First) sum = sums[r];
    for (uint64_t j = 0; j < tables_at_once; j += 4) {
      auto four = load<uint64_t>(offsets[r] + j);
      for (uint64_t i = 0; i < 4; ++i, four >>= 16)
        sum += load<entry>(tables + (j + i) * sizeof(room.tables[0]) + (four & 0xffff));
    }
    if constexpr (Last) {
      const auto all = reinterpret_cast<vec>(sum);
      totals[r][0] += reinterpret_cast<wide>(_mm256_cvtepi16_epi32(_mm256_castsi256_si128(all)));
      totals[r][1] +=
          reinterpret_cast<wide>(_mm256_cvtepi16_epi32(_mm256_extracti128_si256(all, 1)));
    } else {
      sums[r] = sum;
    }
  }
}

// A part of all rows, n elements of up to 16 tokens.
inline void add_part_of_rows(table_room& room, const int8_t* q, uint64_t stride, uint64_t tokens,
                             uint64_t n, uint64_t rows, wide (*totals)[2]) {
  turn_activations(q, stride, tokens, n, room.activations);
  const vec lowest =
      _mm256_cmpeq_epi16(reinterpret_cast<vec>(room.activations[0]), _mm256_set1_epi16(-128));
  const uint64_t together =
      _mm256_testz_si256(lowest, lowest) != 0 ? passes_of_part : passes_of_part / 2;
  const uint64_t passes = (n + 127) / 128 * 4;
  for (uint64_t p = 0; p < passes; ++p) {
    make_tables(room.activations + p / 4 * 128 + p % 4 * tables_at_once, room.tables);
    if (p % together == 0)
      look_up<true, false>(room, room.offsets[p], rows, room.sums, totals);
    else if ((p + 1) % together != 0 && p + 1 != passes)
      look_up<false, false>(room, room.offsets[p], rows, room.sums, totals);
    else
      look_up<false, true>(room, room.offsets[p], rows, room.sums, totals);
  }
}

// Eight rows of eight tokens become eight tokens of eight rows.
inline void turn_floats(floats (&x)[8]) {
  floats a[8], b[8];
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

// Rows of up to eight tokens from t on; `half` of the totals is theirs.
inline void write_totals(const panel_tile& a, uint64_t row, uint64_t rows, uint64_t t,
                         uint64_t tokens, uint64_t half, const wide (*totals)[2]) {
  floats scale = floats{} + 1;
  for (uint64_t i = 0; i < tokens; ++i) scale[i] = a.q_scales[(t + i) * a.q_scales_stride];
  for (uint64_t r = 0; r < rows; r += 8) {
    const uint64_t n = least(rows - r, 8);
    floats out[8] = {};
    for (uint64_t i = 0; i < n; ++i) {
      const floats sum = __builtin_convertvector(totals[r + i][half], floats);
      const float of_row = a.scales[a.one_scale ? 0 : row + r + i];
      out[i] = a.one_scale ? sum / scale * of_row : (floats{} + sum * of_row) / scale;
    }
    turn_floats(out);
    for (uint64_t i = 0; i < tokens; ++i)
      std::memcpy(a.y + (t + i) * a.y_stride + row + r, &out[i], n * sizeof(float));
  }
}

// Tokens [t0, end), up to tokens_at_once, and up to rows_at_once rows. False: a code is 3.
inline bool look_up_rows(const panel_tile& a, uint64_t row, uint64_t rows, uint64_t t0,
                         uint64_t end, table_room& room) {
  for (uint64_t t = t0; t < end; t += tokens_of_entry)
    std::memset(room.totals[(t - t0) / tokens_of_entry], 0, rows * sizeof room.totals[0][0]);
  for (uint64_t e = 0; e < a.k; e += part_of_row) {
    const uint64_t n = least(a.k - e, part_of_row);
    if (!find_offsets(a.w + row * a.w_stride + e / 4, a.w_stride, rows, (n + 127) / 128 * 128,
                      room))
      return false;
    for (uint64_t t = t0; t < end; t += tokens_of_entry)
      add_part_of_rows(room, a.q + t * a.q_stride + e, a.q_stride, least(end - t, tokens_of_entry),
                       n, rows, room.totals[(t - t0) / tokens_of_entry]);
  }
  for (uint64_t t = t0; t < end; t += lanes)
    write_totals(a, row, rows, t, least(end - t, lanes), (t - t0) / lanes % 2,
                 room.totals[(t - t0) / tokens_of_entry]);
  return true;
}

// How many of the tokens, from the first on, are done: the last few of those that fill no entry are
// left to the panels, and so is everything that tables are not for.
uint64_t look_up_tokens(const panel_tile& a) {
  const uint64_t rest = a.tokens % tokens_of_entry;
  const uint64_t tokens = rest < fewest_of_entry ? a.tokens - rest : a.tokens;
  if (a.group != 0 || a.q_group != 0 || a.goes_on || !a.ends || a.rows < fewest_rows) return 0;
  table_room room;
  const uint64_t blocks = (a.rows + rows_at_once - 1) / rows_at_once;
  const uint64_t each = (a.rows + blocks - 1) / blocks;
  for (uint64_t row = 0; row < a.rows; row += each)
    for (uint64_t t = 0; t < tokens; t += tokens_at_once)
      if (!look_up_rows(a, row, least(a.rows - row, each), t, least(tokens, t + tokens_at_once),
                        room))
        return 0;
  return tokens;
}

void look_up_or_multiply(const panel_tile& a) {
  const uint64_t done = look_up_tokens(a);
  if (done == a.tokens) return;
  panel_tile rest = a;
  rest.q += done * a.q_stride;
  rest.q_scales += done * a.q_scales_stride;
  rest.y += done * a.y_stride;
  rest.tokens -= done;
  all(rest);
}

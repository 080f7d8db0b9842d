// The products of linear_grouped.hpp for a machine with vectors: the one text behind the forms,
// which include it inside their anonymous namespace. A lane of four bytes is a row: four elements
// of as many rows as there are lanes are multiplied by the same four activations. So no sum has to
// cross lanes, and a group's scales, sums and results are registers of rows as well. Before that a
// form defines
//   lanes          of four bytes in a register: 4, 8 or 16
//   vec            a register of bytes
//   part           what products are added to, zero when value-initialised; it has room for 32
//                  elements of a row, even of codes that break the format: 3 * -128 in each product
//   vec quarters(rows, at)                 16 bytes of rows 0, 4, 8, 12 (as far as there are lanes)
//   vec low_words(a, b), high_words(a, b)  in each 16 bytes: a0 b0 a1 b1, a2 b2 a3 b3
//   vec low_pairs(a, b), high_pairs(a, b)  in each 16 bytes: a01 b01, a23 b23
//   in_place                               whether dot takes codes times 4, 16 and 64
//   vec spread(const int8_t* q)            four activations in each lane
//   part dot(part, vec codes, vec q)       the part and the products
//   wide widen(part)                       the sum of each lane
// Kernels only, no shared inline functions.

using bytes = uint8_t __attribute__((vector_size(4 * lanes)));
using words = uint16_t __attribute__((vector_size(4 * lanes)));
using wide = int32_t __attribute__((vector_size(4 * lanes)));
using floats = float __attribute__((vector_size(4 * lanes)));

constexpr uint64_t packed_group = 32;  // bytes, of 128 elements

// What is done for a number of rows, whatever the token.
struct row_tile {
  const uint8_t* w[lanes];  // a tile that has fewer rows repeats its last one
  uint64_t rows;
  floats scales[most_groups];
};

// Which groups have scales, and which of them are the shorter ones.
enum class scaled : uint8_t { weights, activations, shorter_activations, shorter_weights };

template <class T>
inline T load(const void* from) {
  T v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

// n bytes, then zeros.
template <class T>
inline T load_first(const void* from, uint64_t n) {
  T v{};
  std::memcpy(&v, from, n);
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

inline void load_scales(const grouped_tile& a, uint64_t r, row_tile& tile) {
  const uint8_t* rows[lanes];
  for (uint64_t i = 0; i < lanes; ++i)
    rows[i] = reinterpret_cast<const uint8_t*>(
        a.scales + (r + (i < tile.rows ? i : tile.rows - 1)) * a.scales_stride);
  uint64_t g = 0;
  for (; g + 4 <= a.groups; g += 4) {
    vec v[4];
    load_columns(rows, g * sizeof(float), v);
    for (uint64_t i = 0; i < 4; ++i) tile.scales[g + i] = reinterpret_cast<floats>(v[i]);
  }
  for (; g < a.groups; ++g)
    for (uint64_t i = 0; i < lanes; ++i)
      std::memcpy(reinterpret_cast<uint8_t*>(&tile.scales[g]) + 4 * i, rows[i] + g * sizeof(float),
                  sizeof(float));
}

inline uint64_t shorter_group(const grouped_tile& a) {
  return a.q_scales && a.q_group < a.group ? a.q_group : a.group;
}
inline uint64_t longer_group(const grouped_tile& a) {
  return a.q_scales && a.q_group > a.group ? a.q_group : a.group;
}

// What a tile of tokens has found so far.
template <int Tokens>
struct progress {
  const int8_t* q[Tokens];
  const int32_t* q_sums[Tokens];  // of each shorter group
  const float* q_scales[Tokens];
  wide sums[Tokens];  // of the shorter group that is being read
  floats inner[Tokens], y[Tokens];
  uint64_t group = 0, left;   // which one, and runs of 32 elements that are left of it
  uint64_t longer = 0, more;  // which one, and shorter groups that are left of it
  uint64_t runs, shorter;     // of 32 elements in a shorter group, of those in a longer one
};

// The 32 elements of a plane are through: so may be a group. Each: so is one, whose activations are
// off its sum already.
template <scaled Scaled, bool Each, int Tokens>
inline void end_plane(const row_tile& tile, const wide (&sums)[Tokens], progress<Tokens>& now) {
  if constexpr (!Each) {
    for (int t = 0; t < Tokens; ++t) now.sums[t] += sums[t];
    if (--now.left != 0) return;
  }
  for (int t = 0; t < Tokens; ++t) {
    floats sum;
    if constexpr (Each) {
      sum = __builtin_convertvector(sums[t], floats);
    } else {
      sum = __builtin_convertvector(now.sums[t] - now.q_sums[t][now.group], floats);
      now.sums[t] = wide{};
    }
    if constexpr (Scaled == scaled::weights) now.y[t] += sum * tile.scales[now.group];
    if constexpr (Scaled == scaled::activations) now.y[t] += sum * now.q_scales[t][now.group];
    if constexpr (Scaled == scaled::shorter_weights) now.inner[t] += sum * tile.scales[now.group];
    if constexpr (Scaled == scaled::shorter_activations)
      now.inner[t] += sum * now.q_scales[t][now.group];
  }
  now.left = now.runs;
  ++now.group;
  if constexpr (Scaled == scaled::shorter_weights || Scaled == scaled::shorter_activations) {
    if (--now.more != 0) return;
    for (int t = 0; t < Tokens; ++t) {
      if constexpr (Scaled == scaled::shorter_weights)
        now.y[t] += now.inner[t] * now.q_scales[t][now.longer];
      else
        now.y[t] += now.inner[t] * tile.scales[now.longer];
      now.inner[t] = floats{};
    }
    now.more = now.shorter;
    ++now.longer;
  }
}

// 128 elements, or the first Planes * 32 of them. Plane p is bits 7:6 of 32 bytes, 5:4, ...
// Each: a plane is a group.
template <scaled Scaled, bool Each, int Planes, int Tokens>
inline void add_packed_group(const row_tile& tile, uint64_t at, progress<Tokens>& now) {
  part parts[Planes][Tokens];
  for (int p = 0; p < Planes; ++p)
    for (int t = 0; t < Tokens; ++t) {
      parts[p][t] = part{};
      if constexpr (Each && in_place)
        parts[p][t] =
            reinterpret_cast<part>(wide{} - (now.q_sums[t][now.group + p] << (6 - 2 * p)));
    }
  for (uint64_t h = 0; h < packed_group; h += 16) {
    vec columns[4];
    load_columns(tile.w, at + h, columns);
    for (uint64_t i = 0; i < 4; ++i)
      for (int p = 0; p < Planes; ++p) {
        const int low_bit = 6 - 2 * p;
        vec codes;
        if constexpr (in_place)
          codes = reinterpret_cast<vec>(reinterpret_cast<words>(columns[i]) &
                                        static_cast<uint16_t>(0x0303 << low_bit));
        else
          codes = reinterpret_cast<vec>((reinterpret_cast<words>(columns[i]) >> low_bit) & 0x0303);
        for (int t = 0; t < Tokens; ++t)
          parts[p][t] = dot(parts[p][t], codes, spread(now.q[t] + 32 * p + h + 4 * i));
      }
  }
  for (int p = 0; p < Planes; ++p) {
    wide sums[Tokens];
    for (int t = 0; t < Tokens; ++t) {
      sums[t] = widen(parts[p][t]);
      if constexpr (in_place) sums[t] >>= 6 - 2 * p;
      if constexpr (Each && !in_place) sums[t] -= now.q_sums[t][now.group];
    }
    end_plane<Scaled, Each, Tokens>(tile, sums, now);
  }
  for (int t = 0; t < Tokens; ++t) now.q[t] += 128;
}

template <scaled Scaled, bool Each, int Tokens>
void multiply(const grouped_tile& a, const row_tile& tile, const int32_t (*q_sums)[most_groups],
              uint64_t r, uint64_t t) {
  progress<Tokens> now;
  now.runs = now.left = shorter_group(a) / 32;
  now.shorter = now.more = longer_group(a) / shorter_group(a);
  float* y = a.y + t * a.y_stride + r;
  for (int j = 0; j < Tokens; ++j) {
    const auto token = static_cast<uint64_t>(j);
    now.q[j] = a.q + (t + token) * a.q_stride;
    now.q_sums[j] = q_sums[t + token];
    if constexpr (Scaled != scaled::weights)
      now.q_scales[j] = a.q_scales + (t + token) * a.q_scales_stride;
    now.sums[j] = wide{};
    now.inner[j] = floats{};
    now.y[j] = a.goes_on ? load_first<floats>(y + token * a.y_stride, tile.rows * sizeof(float))
                         : floats{};
  }
  // The same place of the rows that come next; in rows that are long, a later one of the same.
  constexpr uint64_t most_ahead = 32768;
  const uint64_t ahead = lanes * a.w_stride < most_ahead ? lanes * a.w_stride : a.ahead;
  const uint64_t k = a.groups * a.group, whole = k / 128 * packed_group;
  for (uint64_t at = 0; at < whole; at += packed_group) {
    if constexpr (Tokens == 1)
      if (at % 64 == 0)
        for (uint64_t i = 0; i < lanes; ++i) __builtin_prefetch(tile.w[i] + at + ahead, 0, 2);
    add_packed_group<Scaled, Each, 4, Tokens>(tile, at, now);
  }
  switch (k % 128 / 32) {
    case 1:
      add_packed_group<Scaled, Each, 1, Tokens>(tile, whole, now);
      break;
    case 2:
      add_packed_group<Scaled, Each, 2, Tokens>(tile, whole, now);
      break;
    case 3:
      add_packed_group<Scaled, Each, 3, Tokens>(tile, whole, now);
      break;
    default:
      break;
  }
  for (int j = 0; j < Tokens; ++j)
    std::memcpy(y + static_cast<uint64_t>(j) * a.y_stride, &now.y[j], tile.rows * sizeof(float));
}

// A code is one more than its weight, so the sum of the activations is one too much.
inline void sum_groups(const grouped_tile& a, int32_t (*sums)[most_groups]) {
  const uint64_t group = shorter_group(a), groups = a.groups * a.group / group;
  for (uint64_t t = 0; t < a.tokens; ++t) {
    const int8_t* q = a.q + t * a.q_stride;
    for (uint64_t g = 0; g < groups; ++g) {
      int32_t sum = 0;
      for (uint64_t n = group; n != 0; n -= 32, q += 32)
        for (uint64_t i = 0; i < 32; ++i) sum += q[i];
      sums[t][g] = sum;
    }
  }
}

// Tokens that share the columns of a tile of rows: what the registers hold.
template <scaled Scaled, bool Each, int Tokens>
void each_tile(const grouped_tile& a) {
  int32_t q_sums[most_grouped_tokens][most_groups];
  sum_groups(a, q_sums);
  row_tile tile;
  for (uint64_t r = 0; r < a.rows; r += lanes) {
    tile.rows = a.rows - r < lanes ? a.rows - r : lanes;
    for (uint64_t i = 0; i < lanes; ++i)
      tile.w[i] = a.w + (r + (i < tile.rows ? i : tile.rows - 1)) * a.w_stride;
    if constexpr (Scaled != scaled::activations) {
      // Those of the next rows come while these are multiplied.
      const auto* next = reinterpret_cast<const uint8_t*>(a.scales + (r + lanes) * a.scales_stride);
      for (uint64_t at = 0; at < lanes * a.groups * sizeof(float); at += 64)
        __builtin_prefetch(next + at, 0, 2);
      load_scales(a, r, tile);
    }
    uint64_t t = 0;
    for (; t + Tokens <= a.tokens; t += Tokens)
      multiply<Scaled, Each, Tokens>(a, tile, q_sums, r, t);
    for (; t < a.tokens; ++t) multiply<Scaled, Each, 1>(a, tile, q_sums, r, t);
  }
}

template <scaled Scaled, int Tokens>
void of_kind(const grouped_tile& a) {
  if (shorter_group(a) == 32) return each_tile<Scaled, true, Tokens>(a);
  each_tile<Scaled, false, Tokens>(a);
}

template <int Tokens>
void all(const grouped_tile& a) {
  if (!a.q_scales) return of_kind<scaled::weights, Tokens>(a);
  if (!a.scales) return of_kind<scaled::activations, Tokens>(a);
  if (a.q_group <= a.group) return of_kind<scaled::shorter_activations, Tokens>(a);
  of_kind<scaled::shorter_weights, Tokens>(a);
}

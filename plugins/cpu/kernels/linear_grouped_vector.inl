// The products of linear_grouped.hpp for a machine with vectors: the shared text of the forms,
// which include it inside their anonymous namespace. Kernels only, no shared inline functions.
//
// Expects  what lanes.inl asks for, and
//   in_place       true if dot can take codes times 4, 16 and 64
//   in_words       true if a part has sums of int16
//   void add(part&, vec codes, vec q)      adds the products, as dot
//   part begin_with(const int32_t* start)  a part with these initial sums
// Gives    `multiply_tile`: a tile of linear_grouped.hpp.
// Used by  linear_grouped_*.cpp, except that of scalar code.

#include "prefetch.inl"
#include "lanes.inl"

// Which groups have scales, and which are the shorter ones.
enum class scaled : uint8_t { weights, activations, shorter_activations, shorter_weights };

// A row for each lane, with the data that all tokens share. The lanes [first, last) are requested.
//
// Rows of the packing in rows; a tile at the end repeats its last row.
struct rows_apart {
  static constexpr bool cheap = false;  // to bring codes into lanes
  const uint8_t* w[lanes];
  uint64_t first, last, ahead;
  floats scales[most_groups];

  rows_apart(const grouped_tile& a, uint64_t r) : first(0) {
    last = a.rows - r < lanes ? a.rows - r : lanes;
    for (uint64_t i = 0; i < lanes; ++i) w[i] = a.w + row(r, i) * a.w_stride;
    // Distance to the same place of the next rows; in long rows to a later place of the same rows.
    constexpr uint64_t most_ahead = 32768;
    ahead = lanes * a.w_stride < most_ahead ? lanes * a.w_stride : a.ahead;
    if (a.scales) load_scales(a, r);
  }

  void columns(uint64_t at, uint64_t half, vec (&out)[4]) const { load_columns(w, at + half, out); }
  floats scale(uint64_t g) const { return scales[g]; }
  void prefetch_scales(uint64_t) const {}
  // Column i of 8, 4 bytes each. The columns of two packed groups prefetch a line of each row.
  void prefetch_step(uint64_t at, uint64_t i) const {
    constexpr uint64_t each = 16 / lanes;
    if (i % each == 0) __builtin_prefetch(w[(at % 64 / 4 + i) / each] + at / 64 * 64 + ahead, 0, 3);
  }

 private:
  uint64_t row(uint64_t r, uint64_t i) const { return r + (i < last ? i : last - 1); }
  void load_scales(const grouped_tile& a, uint64_t r) {
    // Prefetches the scales of the next rows while these are multiplied.
    const auto* next = reinterpret_cast<const uint8_t*>(a.scales + (r + lanes) * a.scales_stride);
    for (uint64_t at = 0; at < lanes * a.groups * sizeof(float); at += 64)
      __builtin_prefetch(next + at, 0, 2);
    const uint8_t* from[lanes];
    for (uint64_t i = 0; i < lanes; ++i)
      from[i] = reinterpret_cast<const uint8_t*>(a.scales + row(r, i) * a.scales_stride);
    uint64_t g = 0;
    for (; g + 4 <= a.groups; g += 4) {
      vec v[4];
      load_columns(from, g * sizeof(float), v);
      for (uint64_t i = 0; i < 4; ++i) scales[g + i] = reinterpret_cast<floats>(v[i]);
    }
    for (; g < a.groups; ++g)
      for (uint64_t i = 0; i < lanes; ++i)
        std::memcpy(reinterpret_cast<uint8_t*>(&scales[g]) + 4 * i, from[i] + g * sizeof(float),
                    sizeof(float));
  }
};

// Rows of the packing in tiles: codes are in lanes already.
struct rows_together {
  static constexpr bool cheap = true;
  const uint8_t* w;  // bytes of lane 0
  uint64_t first, last, ahead;
  uint64_t in_tile, stride;         // row of the tile in lane 0; bytes between tiles
  uint64_t unit, codes;             // bytes of a unit, and of its scales
  uint64_t of_groups, more_groups;  // bytes between the units of two groups; groups of a unit - 1
  int groups_bits;                  // the logarithm of their number

  // r counts rows of all tiles.
  rows_together(const grouped_tile& a, uint64_t r)
      : w(a.w + r / rows_of_tile * a.w_stride + r % rows_of_tile * 4),
        first(a.skipped > r ? a.skipped - r : 0),
        last(a.skipped + a.rows - r < lanes ? a.skipped + a.rows - r : lanes),
        ahead(a.ahead),
        in_tile(r % rows_of_tile),
        stride(a.w_stride),
        unit(a.unit),
        codes(a.unit - tile_lines * tile_line),
        of_groups(a.group > 128 ? a.group / 128 * a.unit : a.unit),
        more_groups(codes / tile_line - 1),
        groups_bits(more_groups == 3 ? 2 : static_cast<int>(more_groups)) {}

  void columns(uint64_t at, uint64_t half, vec (&out)[4]) const {
    const uint8_t* from = w + at / packed_group * unit + codes + half / 4 * tile_line;
    for (uint64_t i = 0; i < 4; ++i) out[i] = load<vec>(from + i * tile_line);
  }
  floats scale(uint64_t g) const {
    return load<floats>(w + (g >> groups_bits) * of_groups + (g & more_groups) * tile_line);
  }
  // The lines to prefetch in a pass of some tokens over `registers` registers of rows.
  paced_prefetch next(uint64_t registers, uint64_t pass, uint64_t passes) const {
    const uint64_t rows = registers * lanes, tiles = rows < rows_of_tile ? 1 : rows / rows_of_tile;
    const uint64_t skip = rows < rows_of_tile ? in_tile * stride / rows_of_tile : 0;
    return {w - 4 * in_tile + tiles * stride + skip, rows * stride / rows_of_tile, pass, passes};
  }
  void prefetch_scales(uint64_t at) const {
    const uint8_t* from = w + at / packed_group * unit + ahead;
    for (uint64_t i = 0; i < codes; i += tile_line) prefetch_line(from + i, ahead);
  }
  void prefetch_step(uint64_t at, uint64_t i) const {
    prefetch_line(w + at / packed_group * unit + codes + i * tile_line + ahead, ahead);
  }
};

inline uint64_t shorter_group(const grouped_tile& a) {
  return a.q_scales && a.q_group < a.group ? a.q_group : a.group;
}
inline uint64_t shorter_groups(const grouped_tile& a) {
  return a.groups * a.group / shorter_group(a);
}
inline uint64_t longer_group(const grouped_tile& a) {
  return a.q_scales && a.q_group > a.group ? a.q_group : a.group;
}

// State of a tile of tokens.
template <int Tokens>
struct progress {
  const int8_t* q[Tokens];
  const int32_t* q_sums[Tokens];  // by shorter group, from sum_groups
  const float* q_scales[Tokens];
  wide sums[Tokens];  // of the current shorter group
  floats inner[Tokens], y[Tokens];
  uint64_t group = 0, planes_left;   // number of the shorter group, and what it lacks
  uint64_t longer = 0, groups_left;  // number of the longer group, and the shorter ones it lacks
  uint64_t planes_of_group, groups_of_longer;
};

// Ends a plane of 32 elements, and the groups that end with it. Each: a plane is a group, and
// `sums` already exclude its activations.
template <scaled Scaled, bool Each, class Tile, int Tokens>
inline void end_plane(const Tile& tile, const wide (&sums)[Tokens], progress<Tokens>& now) {
  if constexpr (!Each) {
    for (int t = 0; t < Tokens; ++t) now.sums[t] += sums[t];
    if (--now.planes_left != 0) return;
  }
  for (int t = 0; t < Tokens; ++t) {
    floats sum;
    if constexpr (Each) {
      sum = __builtin_convertvector(sums[t], floats);
    } else {
      sum = __builtin_convertvector(now.sums[t] - now.q_sums[t][now.group], floats);
      now.sums[t] = wide{};
    }
    if constexpr (Scaled == scaled::weights) now.y[t] += sum * tile.scale(now.group);
    if constexpr (Scaled == scaled::activations) now.y[t] += sum * now.q_scales[t][now.group];
    if constexpr (Scaled == scaled::shorter_weights) now.inner[t] += sum * tile.scale(now.group);
    if constexpr (Scaled == scaled::shorter_activations)
      now.inner[t] += sum * now.q_scales[t][now.group];
  }
  now.planes_left = now.planes_of_group;
  ++now.group;
  if constexpr (Scaled == scaled::shorter_weights || Scaled == scaled::shorter_activations) {
    if (--now.groups_left != 0) return;
    for (int t = 0; t < Tokens; ++t) {
      if constexpr (Scaled == scaled::shorter_weights)
        now.y[t] += now.inner[t] * now.q_scales[t][now.longer];
      else
        now.y[t] += now.inner[t] * tile.scale(now.longer);
      now.inner[t] = floats{};
    }
    now.groups_left = now.groups_of_longer;
    ++now.longer;
  }
}

// Adds the planes [First, Last) of 128 elements. Plane p is bits 7:6 of 32 bytes, 5:4, ... Each: a
// plane is a group.
template <scaled Scaled, bool Each, int First, int Last, class Tile, int Tokens>
inline void add_planes(const Tile& tile, uint64_t at, progress<Tokens>& now) {
  part parts[Last - First][Tokens];
  for (int p = First; p < Last; ++p)
    for (int t = 0; t < Tokens; ++t) {
      part& sum = parts[p - First][t] = part{};
      if constexpr (Each && in_place)
        sum = reinterpret_cast<part>(wide{} + now.q_sums[t][now.group + p - First]);
    }
  for (uint64_t h = 0; h < packed_group; h += 16) {
    vec columns[4];
    tile.columns(at, h, columns);
    for (uint64_t i = 0; i < 4; ++i) {
      // Prefetches in the order of addresses: prefetch.inl.
      if constexpr (Tokens == 1) tile.prefetch_step(at, h / 4 + i);
      for (int p = First; p < Last; ++p) {
        const int low_bit = 6 - 2 * p;
        const auto mask = static_cast<uint16_t>(0x0303 << low_bit);
        vec codes;
        if constexpr (in_place)
          codes = reinterpret_cast<vec>(reinterpret_cast<words>(columns[i]) & (words{} + mask));
        else
          codes = reinterpret_cast<vec>((reinterpret_cast<words>(columns[i]) >> low_bit) & 0x0303);
        for (int t = 0; t < Tokens; ++t)
          parts[p - First][t] =
              dot(parts[p - First][t], codes, broadcast(now.q[t] + 32 * p + h + 4 * i));
      }
    }
  }
  for (int p = First; p < Last; ++p) {
    wide sums[Tokens];
    for (int t = 0; t < Tokens; ++t) {
      sums[t] = widen(parts[p - First][t]);
      if constexpr (in_place) sums[t] >>= 6 - 2 * p;
      if constexpr (Each && !in_place) sums[t] -= now.q_sums[t][now.group];
    }
    end_plane<Scaled, Each>(tile, sums, now);
  }
}

// Adds 128 elements, or the first Planes * 32 of them.
template <scaled Scaled, bool Each, int Planes, class Tile, int Tokens>
inline void add_packed_group(const Tile& tile, uint64_t at, progress<Tokens>& now) {
  add_planes<Scaled, Each, 0, Planes>(tile, at, now);
  for (int t = 0; t < Tokens; ++t) now.q[t] += 128;
}

// y points to the first requested lane.
template <scaled Scaled, bool Each, int Tokens, class Tile>
void multiply(const grouped_tile& a, const Tile& tile, const int32_t* q_sums, uint64_t t,
              float* y) {
  progress<Tokens> now;
  now.planes_of_group = now.planes_left = shorter_group(a) / 32;
  now.groups_of_longer = now.groups_left = longer_group(a) / shorter_group(a);
  const uint64_t asked = (tile.last - tile.first) * sizeof(float);
  const auto lane = [&](floats& v) { return reinterpret_cast<uint8_t*>(&v) + 4 * tile.first; };
  for (int j = 0; j < Tokens; ++j) {
    const auto token = static_cast<uint64_t>(j);
    now.q[j] = a.q + (t + token) * a.q_stride;
    now.q_sums[j] = q_sums + (t + token) * shorter_groups(a);
    if constexpr (Scaled != scaled::weights)
      now.q_scales[j] = a.q_scales + (t + token) * a.q_scales_stride;
    now.sums[j] = wide{};
    now.inner[j] = floats{};
    now.y[j] = floats{};
    if (a.goes_on) std::memcpy(lane(now.y[j]), y + token * a.y_stride, asked);
  }
  const uint64_t k = a.groups * a.group, whole = k / 128 * packed_group;
  for (uint64_t at = 0; at < whole; at += packed_group) {
    if constexpr (Tokens == 1) tile.prefetch_scales(at);
    add_packed_group<Scaled, Each, 4>(tile, at, now);
  }
  switch (k % 128 / 32) {
    case 1:
      add_packed_group<Scaled, Each, 1>(tile, whole, now);
      break;
    case 2:
      add_packed_group<Scaled, Each, 2>(tile, whole, now);
      break;
    case 3:
      add_packed_group<Scaled, Each, 3>(tile, whole, now);
      break;
    default:
      break;
  }
  for (int j = 0; j < Tokens; ++j)
    std::memcpy(y + static_cast<uint64_t>(j) * a.y_stride, lane(now.y[j]), asked);
}

// A code is one more than its weight, so products exceed the result by the sum of the activations.
// If planes are groups and their codes are used in place, products begin with minus that sum.
template <bool Each>
inline void sum_groups(const grouped_tile& a, int32_t* sums) {
  const uint64_t group = shorter_group(a);
  for (uint64_t t = 0; t < a.tokens; ++t) {
    const int8_t* q = a.q + t * a.q_stride;
    [[maybe_unused]] int plane = 0;
    for (uint64_t g = shorter_groups(a); g != 0; --g, ++sums) {
      *sums = 0;
      for (uint64_t n = group; n != 0; n -= 32, q += 32)
        for (uint64_t i = 0; i < 32; ++i) *sums += q[i];
      if constexpr (Each && in_place) *sums *= -(64 >> (2 * (plane++ % 4)));
    }
  }
}

// Tokens: the number for which the registers have room. They share the columns of a tile of rows.
template <scaled Scaled, bool Each, int Tokens, class Tile>
void each_tile(const grouped_tile& a) {
  int32_t q_sums[most_group_sums];
  sum_groups<Each>(a, q_sums);
  const uint64_t skipped = Tile::cheap ? a.skipped : 0;
  for (uint64_t r = skipped / lanes * lanes; r < skipped + a.rows; r += lanes) {
    const Tile tile(a, r);
    float* y = a.y + r + tile.first - skipped;
    uint64_t t = 0;
    for (; t + Tokens <= a.tokens; t += Tokens)
      multiply<Scaled, Each, Tokens>(a, tile, q_sums, t, y + t * a.y_stride);
    constexpr int half = Tokens / 2;
    if constexpr (half > 1)
      if (t + half <= a.tokens) {
        multiply<Scaled, Each, half>(a, tile, q_sums, t, y + t * a.y_stride);
        t += half;
      }
    for (; t < a.tokens; ++t) multiply<Scaled, Each, 1>(a, tile, q_sums, t, y + t * a.y_stride);
  }
}

#include "linear_grouped_few.inl"

template <scaled Scaled, int Tokens, class Tile, int Sums>
void of_kind(const grouped_tile& a) {
  if constexpr (Tile::cheap)
    if (a.tokens > 1) return each_few<Scaled, Tokens, Sums>(a);
  constexpr int of_rows = Tile::cheap ? 1 : Tokens;
  if (shorter_group(a) == 32) return each_tile<Scaled, true, of_rows, Tile>(a);
  each_tile<Scaled, false, of_rows, Tile>(a);
}

template <int Tokens, class Tile, int Sums = 0>
void of_scales(const grouped_tile& a) {
  if (!a.q_scales) return of_kind<scaled::weights, Tokens, Tile, Sums>(a);
  if constexpr (!Tile::cheap)
    if (!a.scales) return of_kind<scaled::activations, Tokens, Tile, Sums>(a);
  if (a.q_group <= a.group) return of_kind<scaled::shorter_activations, Tokens, Tile, Sums>(a);
  of_kind<scaled::shorter_weights, Tokens, Tile, Sums>(a);
}

// Apart, Together: tokens that share weights read from rows and from tiles. Sums: registers for the
// sums with tiles.
template <int Apart, int Together, int Sums>
void multiply_tile(const grouped_tile& a) {
  if (a.unit == 0) return of_scales<Apart, rows_apart>(a);
  of_scales<Together, rows_together, Sums>(a);
}

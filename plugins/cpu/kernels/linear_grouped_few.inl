// The products of linear_grouped.hpp for a few tokens with tiles: a part of
// linear_grouped_vector.inl. The activations of the tokens are interleaved, so that one pointer
// serves all, and each sum is a register. The planes of a unit are unrolled by hand.
//
// Weights  tiles of linear_grouped.hpp: 16 rows, and a unit for each 128 elements of them.
//            unit     | 64 bytes of scales for each group | line 0 | line 1 | .. | line 7 |
//            line i   | row 0 | row 1 | .. | row 15 |        64 bytes: 4 of each row
//            row r    | 4 i | 4 i + 1 | 4 i + 2 | 4 i + 3 |  of the 32 bytes of its packed group
//            byte j   | j | j + 32 | j + 64 | j + 96 |       elements, from bits 7:6 to bits 1:0
//          The 32 elements in the same two bits are a plane. A register holds 4, 8 or 16 rows of a
//          line; a second register holds the next rows, of the same tile or of the next one.
// Tokens   their activations are in slots of four elements.
//            | slot 0: 0 to 3 | slot 1: 0 to 3 | .. | slot 0: 4 to 7 | slot 1: 4 to 7 | ..
//          The codes of plane p in line i belong to the elements 32 p + 4 i to 32 p + 4 i + 3.
//
// Template parameters
//   Scaled     which groups have scales, and which are the shorter ones
//   Used       tokens of a pass; each of them has a sum for each register of rows
//   Tokens     slots: the least power of two that is not below Used. Slots past Used (for 3, 5, 6
//              and 7 tokens) repeat the last token and are not multiplied.
//   Registers  registers of rows that are multiplied together: 1 or 2
//   Sums       sums that the form keeps in registers: 2 * Used must fit for two registers of rows
//   P          number of a plane: 0 is bits 7:6, 3 is bits 1:0
//   Whole      a sum begins with each unit; if false, with each plane
//   Planes     groups of activations are planes, so each plane's sum is scaled; if false, the
//              sum of a unit is scaled
//
// Expects  what linear_grouped_vector.inl expects of its form, and what that file and its includes
//          define before this one, such as `scaled`, `rows_together` and `paced_prefetch`.
// Gives    `each_few`.
// Used by  linear_grouped_vector.inl.

constexpr uint64_t of_plane = 32;  // elements

// The activations of a few tokens, in the caller's memory.
struct side_by_side {
  const int8_t* q;        // (elements / 4, tokens, 4)
  const int32_t* starts;  // (planes or units, tokens): initial values of sums
  const float* scales;    // (groups of activations, tokens)
  uint64_t pass, passes;  // number of this pass over the rows, and of all passes
};

// Interleaves 16 bytes of some tokens at a time, as the weights of rows are.
template <int Tokens>
inline void put_side_by_side(const int8_t* q, uint64_t q_stride, uint64_t k, uint64_t used,
                             int8_t* to) {
  const auto token = [&](uint64_t i) { return q + (i < used ? i : used - 1) * q_stride; };
  constexpr uint64_t n = Tokens, at_once = n < lanes ? n : lanes, pieces = lanes / at_once;
  for (uint64_t first = 0; first < n; first += at_once) {
    uint64_t e = 0;
    for (; e + 16 * pieces <= k; e += 16 * pieces) {
      const uint8_t* rows[lanes];
      for (uint64_t i = 0; i < lanes; ++i)
        rows[i] =
            reinterpret_cast<const uint8_t*>(token(first + i % at_once) + e + i / at_once * 16);
      vec columns[4];
      load_columns(rows, 0, columns);
      for (uint64_t i = 0; i < pieces; ++i)
        for (uint64_t j = 0; j < 4; ++j)
          std::memcpy(to + (e + 16 * i + 4 * j) * n + 4 * first,
                      reinterpret_cast<const uint8_t*>(&columns[j]) + 4 * at_once * i, 4 * at_once);
    }
    for (; e < k; e += 4)
      for (uint64_t i = first; i < first + at_once; ++i)
        std::memcpy(to + e * n + 4 * i, token(i) + e, 4);
  }
}

// A code is one more than its weight, so sums begin with minus the sum of their activations. Whole:
// one start for each unit, else for each plane. With codes in place it has the factor of the plane
// that the sum begins with.
template <bool Whole, int Tokens>
inline int32_t* put_starts(const int8_t* q, uint64_t k, int32_t* to) {
  constexpr uint64_t n = Tokens, at_once = n < lanes ? n : lanes;
  constexpr uint64_t step = (n < lanes ? sizeof(vec) : 4 * n);  // bytes
  constexpr uint64_t each = (Whole ? 4 : 1) * of_plane;
  const auto ones = reinterpret_cast<vec>(bytes{} + 1);
  for (uint64_t e = 0; e < k; e += each, to += n) {
    const int factor = !in_place ? 1 : Whole ? 64 : 64 >> (2 * (e / of_plane % 4));
    for (uint64_t first = 0; first < n; first += at_once) {
      wide all{};
      for (uint64_t p = 0; p < each; p += of_plane) {
        part sums{};
        for (uint64_t at = 0; at + step <= of_plane * n; at += step)
          sums = dot(sums, ones, load<vec>(q + (e + p) * n + at + 4 * first));
        all += widen(sums);
      }
      for (uint64_t i = 0; i < at_once; ++i) {
        int32_t sum = 0;
        for (uint64_t l = i; l < lanes; l += at_once) sum += all[l];
        if constexpr (of_plane * n < step)  // a single token
          for (uint64_t at = e; at < e + each; ++at) sum += q[at];
        to[first + i] = in_words ? -sum & 0xffff : -factor * sum;
      }
    }
  }
  return to;
}

// Arranges `used` tokens from t on; the last one is repeated up to Tokens. Fills memory from `room`
// on, and returns its end.
template <bool Whole, int Tokens>
uint8_t* put_together(const grouped_tile& a, uint64_t t, uint64_t used, uint8_t* room,
                      side_by_side& out) {
  const uint64_t k = a.groups * a.group;
  auto* q = reinterpret_cast<int8_t*>(room);
  put_side_by_side<Tokens>(a.q + t * a.q_stride, a.q_stride, k, used, q);
  auto* starts = reinterpret_cast<int32_t*>(q + k * Tokens);
  auto* scales = reinterpret_cast<float*>(put_starts<Whole, Tokens>(q, k, starts));
  out.q = q;
  out.starts = starts;
  out.scales = scales;
  if (a.q_scales)
    for (uint64_t g = 0; g < k / a.q_group; ++g)
      for (uint64_t i = 0; i < Tokens; ++i)
        *scales++ = a.q_scales[(t + (i < used ? i : used - 1)) * a.q_scales_stride + g];
  return reinterpret_cast<uint8_t*>(scales);
}

// With codes in place a plane's sum is too large by 64, 16, 4 or 1. Divides the scales of planes
// by that factor, which is exact, unless a scale is so small that f32 would lose bits: then returns
// false.
template <int Tokens>
bool take_factors(float* scales, const float* end) {
  constexpr float least = 0x1p-100f;
  for (const float* s = scales; s != end; ++s)
    if (*s != 0 && *s < least && *s > -least) return false;
  for (float factor = 64; scales != end; scales += Tokens, factor = factor == 1 ? 64 : factor / 4)
    for (uint64_t i = 0; i < Tokens; ++i) scales[i] /= factor;
  return true;
}

// Adds the products of plane P of a unit, or of one unit for each register, `apart` bytes from each
// other. The activations are interleaved with those of Tokens tokens.
template <int P, int Tokens, int Registers, int Used>
[[gnu::always_inline]] inline void add_plane(const uint8_t* codes, uint64_t apart, const int8_t* q,
                                             part (&sums)[Registers][Used]) {
  constexpr int low_bit = 6 - 2 * P;
  constexpr auto mask = static_cast<uint16_t>(0x0303 << (in_place ? low_bit : 0));
#pragma GCC unroll 8
  for (uint64_t i = 0; i < tile_lines; ++i) {
    vec lines[Registers];
#pragma GCC unroll 2
    for (uint64_t r = 0; r < Registers; ++r) {
      const uint8_t* from = codes + i * tile_line + r * apart;
      auto line = load<words>(from);
      if constexpr (!in_place) line >>= low_bit;
      lines[r] = reinterpret_cast<vec>(line & (words{} + mask));
    }
#pragma GCC unroll 8
    for (uint64_t t = 0; t < Used; ++t) {
      const vec four = broadcast(q + (i * Tokens + t) * 4);
#pragma GCC unroll 2
      for (uint64_t r = 0; r < Registers; ++r) add(sums[r][t], lines[r], four);
    }
  }
}

template <int P>
[[gnu::always_inline]] inline wide sum_of_plane(part sums) {
  wide sum = widen(sums);
  if constexpr (in_place) sum >>= 6 - 2 * P;
  return sum;
}

// Results of registers of rows, and the next data to read.
template <int Registers, int Used>
struct few_rows {
  floats y[Registers][Used];
  const int8_t* q;
  const int32_t* starts;
  const float* scales;
  paced_prefetch next;

  few_rows(const grouped_tile& a, const rows_together& tile, const side_by_side& x,
           const float* from)
      : q(x.q), starts(x.starts), scales(x.scales), next(tile.next(Registers, x.pass, x.passes)) {
#pragma GCC unroll 2
    for (int r = 0; r < Registers; ++r)
#pragma GCC unroll 8
      for (int t = 0; t < Used; ++t) {
        y[r][t] = floats{};
        if (a.goes_on)
          std::memcpy(lane(tile, y[r][t]), from + at(a, r, t), asked(tile));
      }
  }
  void write(const grouped_tile& a, const rows_together& tile, float* to) {
#pragma GCC unroll 2
    for (int r = 0; r < Registers; ++r)
#pragma GCC unroll 8
      for (int t = 0; t < Used; ++t)
        std::memcpy(to + at(a, r, t), lane(tile, y[r][t]), asked(tile));
  }

 private:
  static uint64_t at(const grouped_tile& a, int r, int t) {
    return static_cast<uint64_t>(t) * a.y_stride + static_cast<uint64_t>(r) * lanes;
  }
  // Bytes of the requested lanes. With more than one register, all lanes are stored.
  static uint64_t asked(const rows_together& tile) {
    return (Registers == 1 ? tile.last - tile.first : lanes) * sizeof(float);
  }
  static uint8_t* lane(const rows_together& tile, floats& v) {
    return reinterpret_cast<uint8_t*>(&v) + (Registers == 1 ? 4 * tile.first : 0);
  }
};

// Adds one plane of a unit at whose end its groups of weights end. Without Planes the sum continues
// in `sums`; with Planes (activations in groups of 32) it is scaled and added to `inner`. The first
// plane of a group sets `inner`: y is never -0, so starting from +0 would change nothing.
template <int P, bool Planes, int Tokens, int Registers, int Used>
[[gnu::always_inline]] inline void add_plane_of_unit(const uint8_t* codes, uint64_t apart,
                                                     few_rows<Registers, Used>& now,
                                                     part (&sums)[Registers][Used],
                                                     floats (&inner)[Registers][Used]) {
  if constexpr (P == 0 || Planes) {
#pragma GCC unroll 8
    for (int t = 0; t < Used; ++t)
#pragma GCC unroll 2
      for (int r = 0; r < Registers; ++r) sums[r][t] = begin_with(now.starts + t);
    now.starts += Tokens;
  } else if constexpr (in_place) {
#pragma GCC unroll 2
    for (int r = 0; r < Registers; ++r)
#pragma GCC unroll 8
      for (int t = 0; t < Used; ++t)  // brings the sums to the factor of this plane's codes
        sums[r][t] = reinterpret_cast<part>(reinterpret_cast<wide>(sums[r][t]) >> 2);
  }
  add_plane<P, Tokens>(codes, apart, now.q, sums);
  now.q += Tokens * of_plane;
  if constexpr (Planes) {
#pragma GCC unroll 8
    for (int t = 0; t < Used; ++t)
#pragma GCC unroll 2
      for (int r = 0; r < Registers; ++r) {
        const floats sum = __builtin_convertvector(widen(sums[r][t]), floats) * now.scales[t];
        inner[r][t] = P == 0 ? sum : inner[r][t] + sum;
      }
    now.scales += Tokens;
  }
}

// For units that are groups of weights, and of activations if these have groups. Planes:
// the activations have groups of 32.
template <scaled Scaled, bool Planes, int Registers, int Tokens, int Used>
void multiply_units(const grouped_tile& a, const rows_together& tile, const side_by_side& x,
                    float* y) {
  few_rows<Registers, Used> now(a, tile, x, y);
  const uint64_t apart = lanes < rows_of_tile ? 4 * lanes : a.w_stride;
  const uint8_t* codes = tile.w + tile.codes;
  for (uint64_t g = 0; g < a.groups; ++g, codes += tile.unit) {
    part sums[Registers][Used];
    floats inner[Registers][Used];
    now.next.count(Registers * lanes * tile.unit / rows_of_tile);
    add_plane_of_unit<0, Planes, Tokens>(codes, apart, now, sums, inner);
    add_plane_of_unit<1, Planes, Tokens>(codes, apart, now, sums, inner);
    add_plane_of_unit<2, Planes, Tokens>(codes, apart, now, sums, inner);
    add_plane_of_unit<3, Planes, Tokens>(codes, apart, now, sums, inner);
#pragma GCC unroll 2
    for (uint64_t r = 0; r < Registers; ++r) {
      const auto scale = load<floats>(codes - tile.codes + r * apart);
#pragma GCC unroll 8
      for (int t = 0; t < Used; ++t) {
        floats sum;
        if constexpr (Planes)
          sum = inner[r][t];
        else
          sum = __builtin_convertvector(sum_of_plane<3>(sums[r][t]), floats);
        if constexpr (!Planes && Scaled != scaled::weights) sum = sum * now.scales[t];
        now.y[r][t] += sum * scale;
      }
    }
    if constexpr (!Planes && Scaled != scaled::weights) now.scales += Tokens;
  }
  now.write(a, tile, y);
}

// State of groups of any length.
template <int Used>
struct few_groups {
  wide sums[Used];                   // of the current shorter group
  floats inner[Used];                // of the current longer group
  uint64_t group = 0, planes_left;   // number of the shorter group, and what it lacks
  uint64_t longer = 0, groups_left;  // number of the longer group, and the shorter ones it lacks
  const uint64_t planes_of_group, groups_of_longer;

  explicit few_groups(const grouped_tile& a)
      : planes_left(shorter_group(a) / of_plane),
        groups_left(longer_group(a) / shorter_group(a)),
        planes_of_group(planes_left),
        groups_of_longer(groups_left) {
#pragma GCC unroll 8
    for (int t = 0; t < Used; ++t) {
      sums[t] = wide{};
      inner[t] = floats{};
    }
  }
};

// Adds a plane of a unit, and ends the groups that end with it.
template <scaled Scaled, int P, int Tokens, int Used>
[[gnu::always_inline]] inline void add_plane_of_groups(const rows_together& tile,
                                                       const uint8_t* codes, few_rows<1, Used>& now,
                                                       few_groups<Used>& of) {
  constexpr bool by_weights = Scaled == scaled::weights || Scaled == scaled::shorter_weights;
  part sums[1][Used];
#pragma GCC unroll 8
  for (int t = 0; t < Used; ++t) sums[0][t] = begin_with(now.starts + t);
  now.starts += Tokens;
  add_plane<P, Tokens>(codes, 0, now.q, sums);
  now.q += Tokens * of_plane;
#pragma GCC unroll 8
  for (int t = 0; t < Used; ++t) of.sums[t] += sum_of_plane<P>(sums[0][t]);
  if (--of.planes_left != 0) return;
  of.planes_left = of.planes_of_group;
  floats scale{};
  if constexpr (by_weights) scale = tile.scale(of.group);
#pragma GCC unroll 8
  for (int t = 0; t < Used; ++t) {
    if constexpr (!by_weights) scale = floats{} + now.scales[of.group * Tokens + t];
    const floats sum = __builtin_convertvector(of.sums[t], floats) * scale;
    of.sums[t] = wide{};
    if constexpr (Scaled == scaled::weights)
      now.y[0][t] += sum;
    else
      of.inner[t] += sum;
  }
  ++of.group;
  if constexpr (Scaled != scaled::weights) {
    if (--of.groups_left != 0) return;
    of.groups_left = of.groups_of_longer;
    if constexpr (!by_weights) scale = tile.scale(of.longer);
#pragma GCC unroll 8
    for (int t = 0; t < Used; ++t) {
      if constexpr (by_weights) scale = floats{} + now.scales[of.longer * Tokens + t];
      now.y[0][t] += of.inner[t] * scale;
      of.inner[t] = floats{};
    }
    ++of.longer;
  }
}

// For groups of any length.
template <scaled Scaled, int Tokens, int Used>
void multiply_planes(const grouped_tile& a, const rows_together& tile, const side_by_side& x,
                     float* y) {
  few_rows<1, Used> now(a, tile, x, y);
  few_groups<Used> of(a);
  const uint8_t* codes = tile.w + tile.codes;
  uint64_t left = a.groups * a.group / of_plane;
  for (; left >= 4; left -= 4, codes += tile.unit) {
    now.next.count(lanes * tile.unit / rows_of_tile);
    add_plane_of_groups<Scaled, 0, Tokens>(tile, codes, now, of);
    add_plane_of_groups<Scaled, 1, Tokens>(tile, codes, now, of);
    add_plane_of_groups<Scaled, 2, Tokens>(tile, codes, now, of);
    add_plane_of_groups<Scaled, 3, Tokens>(tile, codes, now, of);
  }
  if (left > 0) add_plane_of_groups<Scaled, 0, Tokens>(tile, codes, now, of);
  if (left > 1) add_plane_of_groups<Scaled, 1, Tokens>(tile, codes, now, of);
  if (left > 2) add_plane_of_groups<Scaled, 2, Tokens>(tile, codes, now, of);
  now.write(a, tile, y);
}

using few_kernel = void(const grouped_tile&, const rows_together&, const side_by_side&, float* y);

// Some tokens of a call, and the kernels that multiply them.
struct few_tokens {
  uint64_t t;
  side_by_side x;
  few_kernel* one;  // for a register of rows
  few_kernel* two;  // for two, if all their lanes are requested; or nullptr
};

// Arranges Used tokens from out.t on, interleaved as Tokens. Sums: number of registers for sums.
template <scaled Scaled, int Tokens, int Used, int Sums>
uint8_t* take_together(const grouped_tile& a, uint8_t* room, few_tokens& out) {
  constexpr int most = Used > 1 && 2 * Used <= Sums ? 2 : 1;
  const bool units = a.group == 4 * of_plane;
  if (units && Scaled != scaled::shorter_weights && (!a.q_scales || a.q_group == a.group)) {
    out.one = multiply_units<Scaled, false, 1, Tokens, Used>;
    if constexpr (most == 2) out.two = multiply_units<Scaled, false, 2, Tokens, Used>;
    return put_together<true, Tokens>(a, out.t, Used, room, out.x);
  }
  uint8_t* const end = put_together<false, Tokens>(a, out.t, Used, room, out.x);
  auto* const scales = reinterpret_cast<float*>(end);
  if (units && Scaled == scaled::shorter_activations && a.q_group == of_plane &&
      (!in_place || take_factors<Tokens>(scales - 4 * a.groups * Tokens, scales))) {
    out.one = multiply_units<Scaled, true, 1, Tokens, Used>;
    if constexpr (most == 2) out.two = multiply_units<Scaled, true, 2, Tokens, Used>;
  } else {
    out.one = multiply_planes<Scaled, Tokens, Used>;
  }
  return end;
}

// Arranges n tokens, at most Used. Those that share a register of activations are a power of two.
template <scaled Scaled, int Tokens, int Used, int Sums>
uint8_t* take_some(const grouped_tile& a, uint64_t n, uint8_t* room, few_tokens& out) {
  if constexpr (Used > 1)
    if (n < Used)
      return take_some<Scaled, (Used - 1) * 2 == Tokens ? Tokens / 2 : Tokens, Used - 1, Sums>(
          a, n, room, out);
  return take_together<Scaled, Tokens, Used, Sums>(a, room, out);
}

// All tokens use two registers of rows before the next are read. Passes have nearly the same number
// of tokens, at most Tokens: a pass with a single token would read the rows again for it alone.
template <scaled Scaled, int Tokens, int Sums>
void each_few(const grouped_tile& a) {
  few_tokens parts_of_call[most_grouped_tokens / Tokens];
  const uint64_t passes = (a.tokens + Tokens - 1) / Tokens;
  auto* room = static_cast<uint8_t*>(a.room);
  for (uint64_t pass = 0; pass < passes; ++pass) {
    const uint64_t first = a.tokens * pass / passes, n = a.tokens * (pass + 1) / passes - first;
    parts_of_call[pass] = {first, {nullptr, nullptr, nullptr, pass, passes}, nullptr, nullptr};
    room = take_some<Scaled, Tokens, Tokens, Sums>(a, n, room, parts_of_call[pass]);
  }
  const uint64_t last = a.skipped + a.rows;
  for (uint64_t r = a.skipped / lanes * lanes; r < last;) {
    const rows_together tile(a, r);
    const bool in_tile = lanes == rows_of_tile || r % (2 * lanes) == 0;  // or two whole tiles
    const bool two = tile.first == 0 && in_tile && r + 2 * lanes <= last;
    for (const few_tokens* f = parts_of_call; f != parts_of_call + passes; ++f) {
      float* y = a.y + r + tile.first - a.skipped + f->t * a.y_stride;
      if (two && f->two) {
        f->two(a, tile, f->x, y);
        continue;
      }
      f->one(a, tile, f->x, y);
      if (two) f->one(a, rows_together(a, r + lanes), f->x, y + lanes);
    }
    r += two ? 2 * lanes : lanes;
  }
}

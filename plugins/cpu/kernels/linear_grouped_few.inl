// The products of linear_grouped.hpp for a few tokens with tiles: a part of
// linear_grouped_vector.inl. The activations of the tokens lie side by side, so that one register
// points at all of them, and each sum is a register: the planes of a unit are written out one by
// one.

constexpr uint64_t run = 32;  // elements of a plane

// What a few tokens bring, in memory of the caller's.
struct side_by_side {
  const int8_t* q;        // (elements / 4, tokens, 4)
  const int32_t* starts;  // (runs or units, tokens): what sums begin with
  const float* scales;    // (groups of activations, tokens)
};

// 16 bytes of some tokens at a time, turned as the weights of rows are.
template <int Tokens>
inline void put_side_by_side(const int8_t* q, uint64_t q_stride, uint64_t k, int8_t* to) {
  constexpr uint64_t n = Tokens, at_once = n < lanes ? n : lanes, pieces = lanes / at_once;
  for (uint64_t first = 0; first < n; first += at_once) {
    uint64_t e = 0;
    for (; e + 16 * pieces <= k; e += 16 * pieces) {
      const uint8_t* rows[lanes];
      for (uint64_t i = 0; i < lanes; ++i)
        rows[i] = reinterpret_cast<const uint8_t*>(q + (first + i % at_once) * q_stride + e +
                                                   i / at_once * 16);
      vec columns[4];
      load_columns(rows, 0, columns);
      for (uint64_t i = 0; i < pieces; ++i)
        for (uint64_t j = 0; j < 4; ++j)
          std::memcpy(to + (e + 16 * i + 4 * j) * n + 4 * first,
                      reinterpret_cast<const uint8_t*>(&columns[j]) + 4 * at_once * i, 4 * at_once);
    }
    for (; e < k; e += 4)
      for (uint64_t i = first; i < first + at_once; ++i)
        std::memcpy(to + e * n + 4 * i, q + i * q_stride + e, 4);
  }
}

// A code is one more than its weight, so the sum of the activations is one too much. Whole: of a
// unit, else of a run. Where codes are used in place, of the plane that a sum begins with.
template <bool Whole, int Tokens>
inline int32_t* put_starts(const int8_t* q, uint64_t k, int32_t* to) {
  constexpr uint64_t n = Tokens, at_once = n < lanes ? n : lanes;
  constexpr uint64_t step = (n < lanes ? sizeof(vec) : 4 * n);  // bytes
  constexpr uint64_t each = (Whole ? 4 : 1) * run;
  const auto ones = reinterpret_cast<vec>(bytes{} + 1);
  for (uint64_t e = 0; e < k; e += each, to += n) {
    const int factor = !in_place ? 1 : Whole ? 64 : 64 >> (2 * (e / run % 4));
    for (uint64_t first = 0; first < n; first += at_once) {
      wide all{};
      for (uint64_t p = 0; p < each; p += run) {
        part sums{};
        for (uint64_t at = 0; at + step <= run * n; at += step)
          sums = dot(sums, ones, load<vec>(q + (e + p) * n + at + 4 * first));
        all += widen(sums);
      }
      for (uint64_t i = 0; i < at_once; ++i) {
        int32_t sum = 0;
        for (uint64_t l = i; l < lanes; l += at_once) sum += all[l];
        if constexpr (run * n < step)  // a token by itself
          for (uint64_t at = e; at < e + each; ++at) sum += q[at];
        to[first + i] = in_words ? -sum & 0xffff : -factor * sum;
      }
    }
  }
  return to;
}

// Tokens from t on. Fills the memory from `room` on, and returns where that ends.
template <bool Whole, int Tokens>
uint8_t* put_together(const grouped_tile& a, uint64_t t, uint8_t* room, side_by_side& out) {
  const uint64_t k = a.groups * a.group;
  auto* q = reinterpret_cast<int8_t*>(room);
  put_side_by_side<Tokens>(a.q + t * a.q_stride, a.q_stride, k, q);
  auto* starts = reinterpret_cast<int32_t*>(q + k * Tokens);
  auto* scales = reinterpret_cast<float*>(put_starts<Whole, Tokens>(q, k, starts));
  out = {q, starts, scales};
  if (a.q_scales)
    for (uint64_t g = 0; g < k / a.q_group; ++g)
      for (uint64_t i = t; i < t + Tokens; ++i) *scales++ = a.q_scales[i * a.q_scales_stride + g];
  return reinterpret_cast<uint8_t*>(scales);
}

// Adds the products of plane P of a unit.
template <int P, int Tokens>
[[gnu::always_inline]] inline void add_plane(const uint8_t* codes, uint64_t ahead, const int8_t* q,
                                             part (&sums)[Tokens]) {
  constexpr int low_bit = 6 - 2 * P;
  constexpr auto mask = static_cast<uint16_t>(0x0303 << (in_place ? low_bit : 0));
#pragma GCC unroll 8
  for (uint64_t i = 0; i < tile_lines; ++i) {
    auto line = load<words>(codes + i * tile_line);
    if constexpr (!in_place) line >>= low_bit;
    line &= words{} + mask;
    // In the order in which they lie: ahead.inl.
    if (i / 2 == P) ask_for(codes + i * tile_line + ahead, ahead);
#pragma GCC unroll 8
    for (int t = 0; t < Tokens; ++t)
      add_four(sums[t], reinterpret_cast<vec>(line),
               q + (i * Tokens + static_cast<uint64_t>(t)) * 4);
  }
}

template <int P>
[[gnu::always_inline]] inline wide sum_of_plane(part sums) {
  wide sum = widen(sums);
  if constexpr (in_place) sum >>= 6 - 2 * P;
  return sum;
}

// What has been found of a register of rows, and what is read next.
template <int Tokens>
struct few_rows {
  floats y[Tokens];
  const int8_t* q;
  const int32_t* starts;
  const float* scales;

  few_rows(const grouped_tile& a, const rows_together& tile, const side_by_side& x,
           const float* from)
      : q(x.q), starts(x.starts), scales(x.scales) {
#pragma GCC unroll 8
    for (int t = 0; t < Tokens; ++t) {
      y[t] = floats{};
      if (a.goes_on) std::memcpy(lane(tile, y[t]), from + at(a, t), asked(tile));
    }
  }
  void write(const grouped_tile& a, const rows_together& tile, float* to) {
#pragma GCC unroll 8
    for (int t = 0; t < Tokens; ++t) std::memcpy(to + at(a, t), lane(tile, y[t]), asked(tile));
  }

 private:
  static uint64_t at(const grouped_tile& a, int t) { return static_cast<uint64_t>(t) * a.y_stride; }
  static uint64_t asked(const rows_together& tile) {
    return (tile.last - tile.first) * sizeof(float);
  }
  static uint8_t* lane(const rows_together& tile, floats& v) {
    return reinterpret_cast<uint8_t*>(&v) + 4 * tile.first;
  }
};

// A plane of a unit by whose end its groups of weights end: y or, where activations have groups of
// 32, what their scales make of it. The first of a group has nothing to be added to: y is never -0,
// so that a +0 before it would change nothing.
template <int P, bool Runs, int Tokens>
[[gnu::always_inline]] inline void add_plane_of_unit(const uint8_t* codes, uint64_t ahead,
                                                     few_rows<Tokens>& now, part (&sums)[Tokens],
                                                     floats (&inner)[Tokens]) {
  if constexpr (P == 0 || Runs) {
#pragma GCC unroll 8
    for (int t = 0; t < Tokens; ++t) sums[t] = begin_with(now.starts + t);
    now.starts += Tokens;
  } else if constexpr (in_place) {
#pragma GCC unroll 8
    for (int t = 0; t < Tokens; ++t)  // so that this plane's codes have the same factor
      sums[t] = reinterpret_cast<part>(reinterpret_cast<wide>(sums[t]) >> 2);
  }
  add_plane<P>(codes, ahead, now.q, sums);
  now.q += Tokens * run;
  if constexpr (Runs) {
#pragma GCC unroll 8
    for (int t = 0; t < Tokens; ++t) {
      const floats sum = __builtin_convertvector(sum_of_plane<P>(sums[t]), floats) * now.scales[t];
      inner[t] = P == 0 ? sum : inner[t] + sum;
    }
    now.scales += Tokens;
  }
}

// Units are groups of weights, and those of activations if these have any; or, Runs, activations
// have groups of 32.
template <scaled Scaled, bool Runs, int Tokens>
void multiply_units(const grouped_tile& a, const rows_together& tile, const side_by_side& x,
                    float* y) {
  few_rows<Tokens> now(a, tile, x, y);
  const uint8_t* codes = tile.w + tile.codes;
  for (uint64_t g = 0; g < a.groups; ++g, codes += tile.unit) {
    part sums[Tokens];
    floats inner[Tokens];
    ask_for(codes - tile.codes + tile.ahead, tile.ahead);
    add_plane_of_unit<0, Runs>(codes, tile.ahead, now, sums, inner);
    add_plane_of_unit<1, Runs>(codes, tile.ahead, now, sums, inner);
    add_plane_of_unit<2, Runs>(codes, tile.ahead, now, sums, inner);
    add_plane_of_unit<3, Runs>(codes, tile.ahead, now, sums, inner);
    const auto scale = load<floats>(codes - tile.codes);
#pragma GCC unroll 8
    for (int t = 0; t < Tokens; ++t) {
      if constexpr (!Runs) inner[t] = __builtin_convertvector(sum_of_plane<3>(sums[t]), floats);
      if constexpr (!Runs && Scaled != scaled::weights) inner[t] = inner[t] * now.scales[t];
      now.y[t] += inner[t] * scale;
    }
    if constexpr (!Runs && Scaled != scaled::weights) now.scales += Tokens;
  }
  now.write(a, tile, y);
}

// What is known of groups of any length.
template <int Tokens>
struct few_groups {
  wide sums[Tokens];             // of the shorter group that is being read
  floats inner[Tokens];          // of the longer one
  uint64_t group = 0, left;      // which one, and runs that are left of it
  uint64_t longer = 0, more;     // which one, and shorter groups that are left of it
  const uint64_t runs, shorter;  // of a shorter group, and such groups of a longer one

  explicit few_groups(const grouped_tile& a)
      : left(shorter_group(a) / run),
        more(longer_group(a) / shorter_group(a)),
        runs(left),
        shorter(more) {
#pragma GCC unroll 8
    for (int t = 0; t < Tokens; ++t) {
      sums[t] = wide{};
      inner[t] = floats{};
    }
  }
};

// A plane of a unit, and the groups that end with it.
template <scaled Scaled, int P, int Tokens>
[[gnu::always_inline]] inline void add_run(const rows_together& tile, const uint8_t* codes,
                                           few_rows<Tokens>& now, few_groups<Tokens>& of) {
  constexpr bool by_weights = Scaled == scaled::weights || Scaled == scaled::shorter_weights;
  part sums[Tokens];
#pragma GCC unroll 8
  for (int t = 0; t < Tokens; ++t) sums[t] = begin_with(now.starts + t);
  now.starts += Tokens;
  add_plane<P>(codes, tile.ahead, now.q, sums);
  now.q += Tokens * run;
#pragma GCC unroll 8
  for (int t = 0; t < Tokens; ++t) of.sums[t] += sum_of_plane<P>(sums[t]);
  if (--of.left != 0) return;
  of.left = of.runs;
  floats scale{};
  if constexpr (by_weights) scale = tile.scale(of.group);
#pragma GCC unroll 8
  for (int t = 0; t < Tokens; ++t) {
    if constexpr (!by_weights) scale = floats{} + now.scales[of.group * Tokens + t];
    const floats sum = __builtin_convertvector(of.sums[t], floats) * scale;
    of.sums[t] = wide{};
    if constexpr (Scaled == scaled::weights)
      now.y[t] += sum;
    else
      of.inner[t] += sum;
  }
  ++of.group;
  if constexpr (Scaled != scaled::weights) {
    if (--of.more != 0) return;
    of.more = of.shorter;
    if constexpr (!by_weights) scale = tile.scale(of.longer);
#pragma GCC unroll 8
    for (int t = 0; t < Tokens; ++t) {
      if constexpr (by_weights) scale = floats{} + now.scales[of.longer * Tokens + t];
      now.y[t] += of.inner[t] * scale;
      of.inner[t] = floats{};
    }
    ++of.longer;
  }
}

// Groups of any length.
template <scaled Scaled, int Tokens>
void multiply_runs(const grouped_tile& a, const rows_together& tile, const side_by_side& x,
                   float* y) {
  few_rows<Tokens> now(a, tile, x, y);
  few_groups<Tokens> of(a);
  const uint8_t* codes = tile.w + tile.codes;
  uint64_t left = a.groups * a.group / run;
  for (; left >= 4; left -= 4, codes += tile.unit) {
    for (uint64_t i = 0; i < tile.codes; i += tile_line)
      ask_for(codes - tile.codes + i + tile.ahead, tile.ahead);
    add_run<Scaled, 0>(tile, codes, now, of);
    add_run<Scaled, 1>(tile, codes, now, of);
    add_run<Scaled, 2>(tile, codes, now, of);
    add_run<Scaled, 3>(tile, codes, now, of);
  }
  if (left > 0) add_run<Scaled, 0>(tile, codes, now, of);
  if (left > 1) add_run<Scaled, 1>(tile, codes, now, of);
  if (left > 2) add_run<Scaled, 2>(tile, codes, now, of);
  now.write(a, tile, y);
}

// So many tokens of a call, and what multiplies them.
struct few_tokens {
  uint64_t t;
  side_by_side x;
  void (*multiply)(const grouped_tile&, const rows_together&, const side_by_side&, float* y);
};

template <scaled Scaled, int Tokens>
uint8_t* take_together(const grouped_tile& a, uint8_t* room, few_tokens& out) {
  const bool units = a.group == 4 * run;
  if (units && Scaled == scaled::shorter_activations && a.q_group == run) {
    out.multiply = multiply_units<Scaled, true, Tokens>;
    return put_together<false, Tokens>(a, out.t, room, out.x);
  }
  if (units && Scaled != scaled::shorter_weights && (!a.q_scales || a.q_group == a.group)) {
    out.multiply = multiply_units<Scaled, false, Tokens>;
    return put_together<true, Tokens>(a, out.t, room, out.x);
  }
  out.multiply = multiply_runs<Scaled, Tokens>;
  return put_together<false, Tokens>(a, out.t, room, out.x);
}

// The tokens from t on, so many at a time, then half as many.
template <scaled Scaled, int Tokens>
few_tokens* take_all(const grouped_tile& a, uint64_t t, uint8_t* room, few_tokens* out) {
  for (; t + Tokens <= a.tokens; t += Tokens, ++out) {
    out->t = t;
    room = take_together<Scaled, Tokens>(a, room, *out);
  }
  if constexpr (Tokens > 1) return take_all<Scaled, Tokens / 2>(a, t, room, out);
  return out;
}

// All that share a register of rows go by it before the next one is read.
template <scaled Scaled, int Tokens>
void each_few(const grouped_tile& a) {
  few_tokens some[most_grouped_tokens / Tokens + Tokens];
  const few_tokens* const end = take_all<Scaled, Tokens>(a, 0, static_cast<uint8_t*>(a.room), some);
  for (uint64_t r = a.skipped / lanes * lanes; r < a.skipped + a.rows; r += lanes) {
    const rows_together tile(a, r);
    float* y = a.y + r + tile.first - a.skipped;
    for (const few_tokens* f = some; f != end; ++f)
      f->multiply(a, tile, f->x, y + f->t * a.y_stride);
  }
}

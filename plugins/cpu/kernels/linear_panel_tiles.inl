// The products of linear_panel.hpp with AMX: matrix registers (tiles) of 16 rows of 64 bytes, eight
// of them, beside AVX-512 VNNI. One operand is the activations, unchanged: a tile row is 64
// elements of a token. The other is the panel, unchanged: a tile row is four elements of 16 rows.
// Without groups, four tiles hold the sums of 32 tokens and 32 rows; with groups, those of 16
// tokens and 16 rows for four groups. The last tokens use tiles with fewer rows, and elements that
// fill no tile are multiplied as in linear_panel_avx512vnni.cpp. Tiles hold integers only;
// linear_panel.hpp defines the floating-point operations and their order.
//
// Tiles    without groups                    codes_0     codes_1      64 elements of 16 rows each
//            q_0, of tokens 0-15               sums_00     sums_01
//            q_1, of tokens 16-31              sums_10     sums_11
//          with groups                       codes_0                  32 or 64 elements of 16 rows
//            q_0, of tokens 0-15               one of tiles 0 to 3: each has the sums of one group
//
// Template parameters
//   Two        there are more than 16 tokens: q_1, sums_10 and sums_11 are used
//   G          number of the tile that has the sums of a group
//   Groups     which groups have scales, and which are the shorter ones
//   ByWeights  the shorter groups are those of weights
//   Tokens     tokens that an array of sums has room for
//
// A form includes this inside its anonymous namespace. Kernels only, no shared inline functions.
//
// Expects
//   void configure(const tile_shapes*)     eight tiles, all zero; the struct is in linear_panel.hpp
//   void release()                         frees the tiles
//   void zero_tile<Tile>()
//   void load_tile<Tile>(const void* from, uint64_t stride), store_tile<Tile>(void* to, stride)
//                                          its rows are `stride` bytes apart
//   void add_tile_products<C, A, B>()      C += A B, of int8 and uint8
//   void add_weight_products<C, A, B>()    the same of int8 and int8
// Gives    `all_in_tiles`: a tile of linear_panel.hpp.
// Used by  linear_panel_amx.cpp.

#include "registers_avx512.inl"

using part = __m512i;  // int32

// Inline assembly, because g++ 12 copies the sums with _mm512_dpbusd_epi32.
inline part dot(part sums, vec codes, vec q) {
  asm("vpdpbusd %2, %1, %0" : "+v"(sums) : "v"(codes), "v"(q));
  return sums;
}

inline auto widen(part sums) {
  using wide = int32_t __attribute__((vector_size(64)));
  return reinterpret_cast<wide>(sums);
}

constexpr uint64_t registers = 2, at_once = 8, steps_of_part = 0;

#include "linear_panel_vector.inl"

constexpr uint64_t tokens_of_tile = 16;

// Tile numbers: sums by tokens and registers of rows, activations by tokens, codes by registers.
constexpr int sums_00 = 0, sums_01 = 1, sums_10 = 2, sums_11 = 3, q_0 = 4, q_1 = 5, codes_0 = 6,
              codes_1 = 7;
// With scale groups, tiles 0 to 3 hold the sums of four groups instead of sums_00 to sums_11.
constexpr uint64_t groups_at_once = 4;

// The last elements, fewer than a tile has, token by token. No real matrix has any.
template <uint64_t Tokens>
inline void add_rest(const uint8_t* codes, uint64_t steps, const int8_t* q, uint64_t stride,
                     uint64_t tokens, wide (&sums)[registers][Tokens]) {
  for (uint64_t t = 0; t < Tokens && t < tokens; ++t) {
    wide one[registers][1];
    for (uint64_t r = 0; r < registers; ++r) one[r][0] = sums[r][t];
    add_part<1>(codes, steps, q + t * stride, stride, one);
    for (uint64_t r = 0; r < registers; ++r) sums[r][t] = one[r][0];
  }
}

// Sets the shapes for `tokens` tokens, in one or two tiles.
inline void shape_tiles(uint64_t tokens) {
  constexpr uint64_t steps = 16;  // times four elements of a row
  const uint64_t first = least(tokens, tokens_of_tile);
  const auto shape = [](uint64_t rows, uint64_t row_bytes, int tile, tile_shapes& out) {
    out.rows[tile] = static_cast<uint8_t>(rows);
    out.row_bytes[tile] = static_cast<uint16_t>(rows == 0 ? 0 : row_bytes);
  };
  tile_shapes shapes{};
  shapes.palette = 1;
  shape(first, line, sums_00, shapes);
  shape(first, line, sums_01, shapes);
  shape(tokens - first, line, sums_10, shapes);
  shape(tokens - first, line, sums_11, shapes);
  shape(first, 4 * steps, q_0, shapes);
  shape(tokens - first, 4 * steps, q_1, shapes);
  shape(steps, line, codes_0, shapes);
  shape(steps, line, codes_1, shapes);
  configure(&shapes);
}

// Without groups: the sums of slices of a panel are kept in memory, or in the tiles if those have
// room for all tokens.
struct tile_sums {
  alignas(64) wide of[widest_panel.tokens / (2 * tokens_of_tile)][registers][2 * tokens_of_tile];
};

// Adds the slice that begins at `element`, for `tokens` tokens from t on, in one or two tiles.
template <bool Two>
inline void add_slice(const panel_tile& a, panel& w, uint64_t element, uint64_t n, uint64_t t,
                      uint64_t tokens, bool load, bool store,
                      wide (&sums)[registers][2 * tokens_of_tile]) {
  constexpr uint64_t w_stride = registers * line, more = tokens_of_tile;
  const uint64_t q_stride = a.q_stride;
  const int8_t* q = a.q + t * q_stride + element;
  const uint8_t* codes = w.codes[0][0];
  if (load && element == 0) {
    zero_tile<sums_00>();
    zero_tile<sums_01>();
    if constexpr (Two) {
      zero_tile<sums_10>();
      zero_tile<sums_11>();
    }
  } else if (load) {
    load_tile<sums_00>(sums[0], line);
    load_tile<sums_01>(sums[1], line);
    if constexpr (Two) {
      load_tile<sums_10>(sums[0] + more, line);
      load_tile<sums_11>(sums[1] + more, line);
    }
  }
  uint64_t e = 0;
  for (; e + 64 <= n; e += 64) {
    load_tile<codes_0>(codes + e / 4 * w_stride, w_stride);
    load_tile<codes_1>(codes + e / 4 * w_stride + line, w_stride);
    load_tile<q_0>(q + e, q_stride);
    add_tile_products<sums_00, q_0, codes_0>();
    add_tile_products<sums_01, q_0, codes_1>();
    if constexpr (Two) {
      load_tile<q_1>(q + more * q_stride + e, q_stride);
      add_tile_products<sums_10, q_1, codes_0>();
      add_tile_products<sums_11, q_1, codes_1>();
    }
    if (e % 128 == 0) w.next.prefetch();
  }
  if (!store && e == n) return;
  store_tile<sums_00>(sums[0], line);
  store_tile<sums_01>(sums[1], line);
  if constexpr (Two) {
    store_tile<sums_10>(sums[0] + more, line);
    store_tile<sums_11>(sums[1] + more, line);
  }
  if (e < n) add_rest(codes + e / 4 * w_stride, (n - e) / 4, q + e, q_stride, tokens, sums);
}

struct tiles_room {
  panel w;
  tile_sums sums;
};

void every_panel_in_tiles(const panel_tile& a) {
  static_assert(sizeof(tiles_room) <= panel_room_bytes);
  constexpr uint64_t most = 2 * tokens_of_tile;
  int32_t q_sums[widest_panel.tokens];
  sum_groups(a, a.k, q_sums);
  auto* const __restrict room = static_cast<tiles_room*>(a.room);
  panel& w = room->w;
  tile_sums& sums = room->sums;
  const uint64_t groups = (a.tokens + most - 1) / most, last = a.tokens - (groups - 1) * most;
  const uint64_t pieces = (a.tokens / most + 1) * (a.k / 128 + 1);
  if (groups == 1) shape_tiles(last);
  for (uint64_t row = 0; row < a.rows; row += panel_rows) {
    w.first = 0;
    w.last = least(a.rows - row, panel_rows);
    w.next = lines_of(a, row + panel_rows, pieces);
    for (uint64_t e = 0; e < a.k; e += slice) {
      const uint64_t n = least(a.k - e, slice);
      for (uint64_t r = 0; r < registers; ++r) fill_rows(a, row + r * lanes, r, e, n, w);
      if (groups > 1) shape_tiles(most);
      for (uint64_t g = 0; g < groups; ++g) {
        const uint64_t tokens = g + 1 < groups ? most : last;
        if (groups > 1 && tokens < most) shape_tiles(tokens);
        const bool load = groups > 1 || e == 0, store = groups > 1 || e + n == a.k;
        if (tokens > tokens_of_tile)
          add_slice<true>(a, w, e, n, g * most, tokens, load, store, sums.of[g]);
        else
          add_slice<false>(a, w, e, n, g * most, tokens, load, store, sums.of[g]);
      }
    }
    float* y = a.y + row;
    for (uint64_t t = 0; t < a.tokens; ++t, y += a.y_stride) {
      wide out[registers] = {};
      if (a.goes_on) read_rows(w, y, out);
      for (uint64_t r = 0; r < registers; ++r) out[r] += sums.of[t / most][r][t % most] + q_sums[t];
      write_sums(a, w, t, out, y);
    }
  }
}

// With groups a tile has the sums of one group, of 16 tokens and a register of rows. The panel
// holds weights, not codes, so no correction is needed.
inline void shape_group_tiles(uint64_t tokens, uint64_t each) {
  tile_shapes shapes{};
  shapes.palette = 1;
  const auto shape = [&](uint64_t rows, uint64_t row_bytes, uint64_t tile) {
    shapes.rows[tile] = static_cast<uint8_t>(rows);
    shapes.row_bytes[tile] = static_cast<uint16_t>(row_bytes);
  };
  for (uint64_t g = 0; g < groups_at_once; ++g) shape(tokens, line, g);
  shape(tokens, 4 * each, q_0);
  shape(each, line, codes_0);
  configure(&shapes);
}

// sums = the products of group g, in tile G. The group has `each` times four elements.
template <int G>
inline void multiply_group(const panel_tile& a, const panel& w, uint64_t r, uint64_t t,
                           uint64_t group, uint64_t g, uint64_t each,
                           wide (&sums)[tokens_of_tile]) {
  constexpr uint64_t w_stride = registers * line;
  const uint64_t first = g * group, stride = a.q_stride;
  zero_tile<G>();
  for (uint64_t e = first; e < first + group; e += 4 * each) {
    load_tile<codes_0>(w.codes[e / 4][r], w_stride);
    load_tile<q_0>(a.q + t * stride + e, stride);
    add_weight_products<G, q_0, codes_0>();
  }
  store_tile<G>(sums, line);
}

// Multiplies four groups at once, or the remaining ones.
inline void multiply_groups(const panel_tile& a, const panel& w, uint64_t r, uint64_t t,
                            uint64_t group, uint64_t g, uint64_t n, uint64_t each,
                            wide (&sums)[groups_at_once][tokens_of_tile]) {
  multiply_group<0>(a, w, r, t, group, g, each, sums[0]);
  if (n > 1) multiply_group<1>(a, w, r, t, group, g + 1, each, sums[1]);
  if (n > 2) multiply_group<2>(a, w, r, t, group, g + 2, each, sums[2]);
  if (n > 3) multiply_group<3>(a, w, r, t, group, g + 3, each, sums[3]);
}

// Adds `n` shorter groups from g on to `to`, for one token.
template <bool ByWeights>
inline floats add_groups(const panel& w, uint64_t r, uint64_t g, uint64_t n, const float* q_scales,
                         const wide (&sums)[groups_at_once][tokens_of_tile], uint64_t t,
                         floats to) {
  const auto add = [&](uint64_t i) {
    const floats sum = __builtin_convertvector(sums[i][t], floats);
    if constexpr (ByWeights)
      to += sum * w.scales[g + i][r];
    else
      to += sum * q_scales[g + i];
  };
  for (uint64_t i = 0; i < n; ++i) add(i);
  return to;
}

// Shorter groups that are multiplied at once: n from number `first` on, in the longer group l.
struct batch {
  uint64_t first, n, l;
  bool begins, ends;  // the longer group
};

// All groups of a register of rows for at most 16 tokens from t on. The next groups are multiplied
// before the sums of these are used, so that the processor does both at once.
template <grouped Groups>
void grouped_tile_rows(const panel_tile& a, const panel& w, uint64_t r, uint64_t t0,
                       uint64_t tokens, uint64_t each, floats (&y)[tokens_of_tile]) {
  constexpr bool by_weights = Groups == grouped::weights || Groups == grouped::shorter_weights;
  constexpr bool both =
      Groups == grouped::shorter_weights || Groups == grouped::shorter_activations;
  const uint64_t shorter = by_weights ? a.group : a.q_group;
  const uint64_t longer = !both ? a.k : by_weights ? a.q_group : a.group;
  const uint64_t of_longer = longer / shorter, all_groups = a.k / shorter;
  const auto batch_from = [&](uint64_t g, uint64_t l) {
    const uint64_t n = least((l + 1) * of_longer - g, groups_at_once);
    return batch{g, n, l, g == l * of_longer, g + n == (l + 1) * of_longer};
  };
  const float* scales = a.q_scales + t0 * a.q_scales_stride;
  wide sums[2][groups_at_once][tokens_of_tile];
  floats inner[tokens_of_tile];
  batch now = batch_from(0, 0);
  multiply_groups(a, w, r, t0, shorter, 0, now.n, each, sums[0]);
  for (uint64_t turn = 0;; turn = 1 - turn) {
    const uint64_t g = now.first + now.n;
    batch next{};
    if (g < all_groups) {
      next = batch_from(g, now.ends ? now.l + 1 : now.l);
      multiply_groups(a, w, r, t0, shorter, g, next.n, each, sums[1 - turn]);
    }
    const auto use = [&](uint64_t n, bool begins, bool ends) {
      for (uint64_t t = 0; t < tokens; ++t) {
        const float* of_token = scales + t * a.q_scales_stride;
        const floats sum = add_groups<by_weights>(w, r, now.first, n, of_token, sums[turn], t,
                                                  !both    ? y[t]
                                                  : begins ? floats{}
                                                           : inner[t]);
        if (!both)
          y[t] = sum;
        else if (!ends)
          inner[t] = sum;
        else if constexpr (by_weights)
          y[t] += sum * of_token[now.l];
        else
          y[t] += sum * w.scales[now.l][r];
      }
    };
    if (now.n == groups_at_once && now.begins && now.ends)
      use(groups_at_once, true, true);  // the usual case: a loop without branches
    else
      use(now.n, now.begins, now.ends);
    if (g == all_groups) return;
    now = next;
  }
}

template <grouped Groups>
void every_grouped_panel(const panel_tile& a) {
  constexpr bool in_rows = Groups == grouped::activations;
  const uint64_t shorter = a.group == 0     ? a.q_group
                           : a.q_group == 0 ? a.group
                                            : least(a.group, a.q_group);
  const uint64_t each = shorter % 64 == 0 ? 16 : 8;
  panel& w = *static_cast<panel*>(a.room);
  const uint64_t end = a.skipped + a.rows;
  const uint64_t pieces = (a.tokens / tokens_of_tile + 1) * registers;
  for (uint64_t row = a.skipped / lanes * lanes; row < end; row += panel_rows) {
    w.first = a.skipped > row ? a.skipped - row : 0;
    w.last = least(end - row, panel_rows);
    for (uint64_t r = 0; r < registers; ++r)
      if constexpr (in_rows)
        fill_rows<1>(a, row + r * lanes, r, 0, a.k, w);
      else
        fill_tiles<1>(a, row + r * lanes, r, w);
    w.next = lines_of(a, row + panel_rows, pieces);
    float* y = a.y + (row + w.first - a.skipped);
    for (uint64_t t = 0; t < a.tokens; t += tokens_of_tile) {
      const uint64_t tokens = least(a.tokens - t, tokens_of_tile);
      shape_group_tiles(tokens, each);
      floats sums[registers][tokens_of_tile];
      for (uint64_t i = 0; i < tokens; ++i) {
        floats before[registers] = {};
        if (a.goes_on) read_rows(w, y + (t + i) * a.y_stride, before);
        for (uint64_t r = 0; r < registers; ++r) sums[r][i] = before[r];
      }
      for (uint64_t r = 0; r < registers; ++r) {
        w.next.prefetch();
        grouped_tile_rows<Groups>(a, w, r, t, tokens, each, sums[r]);
      }
      for (uint64_t i = 0; i < tokens; ++i) {
        floats out[registers];
        for (uint64_t r = 0; r < registers; ++r) {
          out[r] = sums[r][i];
          if (!a.ends) continue;
          if constexpr (Groups == grouped::weights)
            out[r] = out[r] / a.q_scales[(t + i) * a.q_scales_stride];
          if constexpr (in_rows) out[r] = floats{} + out[r] * w.row_scales[r];
        }
        write_rows(w, out, y + (t + i) * a.y_stride);
      }
    }
  }
}

// A thread has tiles only during a call: while they are in use, the operating system saves 8 KiB
// more at each switch to another thread.
void all_in_tiles(const panel_tile& a) {
  if (a.group == 0 && a.q_group == 0)
    every_panel_in_tiles(a);
  else if (a.group == 0)
    every_grouped_panel<grouped::activations>(a);
  else if (a.q_group == 0)
    every_grouped_panel<grouped::weights>(a);
  else if (a.q_group <= a.group)
    every_grouped_panel<grouped::shorter_activations>(a);
  else
    every_grouped_panel<grouped::shorter_weights>(a);
  release();
}

// The products of linear_panel.hpp for a machine with vectors: the shared text of the forms, which
// include it inside their anonymous namespace. Kernels only, no shared inline functions.
//
// Expects  what lanes.inl asks for, and
//   registers      of rows, side by side in a panel
//   at_once        tokens whose sums, with those of all registers, stay in registers
//   steps_of_part  steps of four elements that a part has room for: a multiple of 8; 0: any number,
//                  and a part is a register of int32 sums
// Gives    `multiply_tile`: a tile of linear_panel.hpp.
// Used by  linear_panel_*.cpp, except those of AMX and scalar code; linear_panel_tiles.inl.

#include "lanes.inl"

constexpr uint64_t panel_rows = registers * lanes, line = 4 * lanes;
constexpr bool parts_are_sums = steps_of_part == 0;
constexpr uint64_t steps_of_line = 32;  // steps of four elements between prefetches

// Which groups have scales, and which are the shorter ones.
enum class grouped : uint8_t { activations, weights, shorter_activations, shorter_weights };

// Prefetches the lines of the next panel's weights while this one is multiplied.
struct lines_ahead {
  const uint8_t* run;          // adjacent bytes: a row, or a tile of rows
  uint64_t stride, run_bytes;  // from one run to the next, and of each
  uint64_t runs_left;          // with this one
  uint64_t offset;             // of the next line in this run, in bytes
  uint64_t lines_per_call;

  void prefetch() {
    for (uint64_t i = 0; i < lines_per_call && runs_left != 0; ++i) {
      __builtin_prefetch(run + offset, 0, 2);
      offset += 64;
      if (offset < run_bytes) continue;
      offset = 0;
      run += stride;
      --runs_left;
    }
  }
};

// Four elements of all rows, then the next four of all rows.
struct panel {
  alignas(64) uint8_t codes[usual_panel.k / 4][registers][line];
  floats scales[usual_panel.k / 32][registers];  // by group of weights
  floats row_scales[registers];
  uint64_t first, last;  // the requested rows of it
  lines_ahead next;
};

inline uint64_t least(uint64_t a, uint64_t b) {
  return a < b ? a : b;
}

// 128 elements of a register of rows. Plane p is bits 7:6 of 32 bytes, 5:4, ... Less is subtracted
// from each code; with 1 the result is the weight.
template <uint8_t Less = 0>
inline void unpack(const vec (&columns)[8], uint64_t element, uint64_t r, panel& to) {
  for (uint64_t p = 0; p < 4; ++p)
    for (uint64_t i = 0; i < 8; ++i) {
      const words codes = reinterpret_cast<words>(columns[i]) >> (6 - 2 * p) & 0x0303;
      const bytes out = reinterpret_cast<bytes>(codes) - Less;
      std::memcpy(to.codes[element / 4 + 8 * p + i][r], &out, line);
    }
}

// Fills register r of the panel with n elements, from a multiple of 128 on, of the rows from `row`
// on; the last row is repeated.
template <uint8_t Less = 0>
inline void fill_rows(const panel_tile& a, uint64_t row, uint64_t r, uint64_t element, uint64_t n,
                      panel& to) {
  const uint8_t* rows[lanes];
  for (uint64_t i = 0; i < lanes; ++i) {
    const uint64_t at = least(row + i, a.rows - 1);
    rows[i] = a.w + at * a.w_stride + element / 4;
    to.row_scales[r][i] = a.scales[a.one_scale ? 0 : at];
  }
  for (uint64_t e = 0, at = 0; e < n; e += 128, at += packed_group) {
    vec columns[8];
    load_columns(rows, at, reinterpret_cast<vec(&)[4]>(columns[0]));
    load_columns(rows, at + 16, reinterpret_cast<vec(&)[4]>(columns[4]));
    unpack<Less>(columns, e, r, to);
  }
}

// As fill_rows, from tiles. `row` counts all rows; after the last tile, that one is repeated.
template <uint8_t Less = 0>
inline void fill_tiles(const panel_tile& a, uint64_t row, uint64_t r, panel& to) {
  const uint64_t tile = least(row, a.skipped + a.rows - 1) / rows_of_tile;
  const uint8_t* unit = a.w + tile * a.w_stride + row % rows_of_tile * 4;
  const uint64_t scales = a.unit / tile_line - tile_lines, each = a.group < 128 ? a.group : 128;
  for (uint64_t e = 0; e < a.k; e += 128, unit += a.unit) {
    for (uint64_t i = 0; i < scales && e + i * each < a.k; ++i)
      to.scales[(e + i * each) / a.group][r] = load<floats>(unit + i * tile_line);
    vec columns[8];
    for (uint64_t i = 0; i < 8; ++i) columns[i] = load<vec>(unit + (scales + i) * tile_line);
    unpack<Less>(columns, e, r, to);
  }
}

// Initial values of sums. A code is one more than its weight, so products exceed the result by the
// sum of the activations: of each `group` activations, a multiple of 32, or of all.
inline void sum_groups(const panel_tile& a, uint64_t group, int32_t* sums) {
  for (uint64_t t = 0; t < a.tokens; ++t) {
    const int8_t* q = a.q + t * a.q_stride;
    for (uint64_t e = 0; e < a.k; e += group) {
      const uint64_t end = least(e + group, a.k);
      uint64_t i = e;
      wide many{};
      for (; i + line <= end; i += line)
        many += widen(dot(part{}, reinterpret_cast<vec>(bytes{} + 1), load<vec>(q + i)));
      int32_t sum = 0;
      if (i != e)
        for (uint64_t l = 0; l < lanes; ++l) sum += many[l];
      for (; i + 32 <= end; i += 32)
        for (uint64_t j = 0; j < 32; ++j) sum += q[i + j];
      for (; i < end; ++i) sum += q[i];
      *sums++ = -sum;
    }
  }
}

// Makes the compiler keep this in memory, since registers are for the current sums.
inline void in_memory(const void* there) {
  asm volatile("" : : "r"(there) : "memory");
}

// parts += the products of `steps` times four elements.
template <uint64_t Tokens>
inline void add_steps(const uint8_t* codes, uint64_t steps, const int8_t* q, uint64_t stride,
                      part (&parts)[registers][Tokens]) {
  for (uint64_t i = 0; i < steps; ++i) {
    vec w[registers];
    for (uint64_t r = 0; r < registers; ++r) w[r] = load<vec>(codes + (i * registers + r) * line);
    for (uint64_t t = 0; t < Tokens; ++t) {
      const vec x = broadcast(q + t * stride + 4 * i);
      for (uint64_t r = 0; r < registers; ++r) parts[r][t] = dot(parts[r][t], w[r], x);
    }
  }
}

// sums += products, as many as a part has room for. If this is inlined into the loop over groups,
// g++ 12 keeps half of the parts in memory, which takes 1.3 to 1.8 times the time.
template <uint64_t Tokens>
[[gnu::noinline]] void add_part(const uint8_t* codes, uint64_t steps, const int8_t* q,
                                uint64_t stride, wide (&sums)[registers][Tokens]) {
  part parts[registers][Tokens] = {};
  add_steps<Tokens>(codes, steps, q, stride, parts);
  for (uint64_t r = 0; r < registers; ++r)
    for (uint64_t t = 0; t < Tokens; ++t) sums[r][t] += widen(parts[r][t]);
}

// sums += any number of products.
template <uint64_t Tokens>
inline void add_products(const uint8_t* codes, uint64_t steps, const int8_t* q, uint64_t stride,
                         wide (&sums)[registers][Tokens]) {
  if constexpr (parts_are_sums) {
    part parts[registers][Tokens];
    for (uint64_t r = 0; r < registers; ++r)
      for (uint64_t t = 0; t < Tokens; ++t) parts[r][t] = reinterpret_cast<part>(sums[r][t]);
    add_steps<Tokens>(codes, steps, q, stride, parts);
    for (uint64_t r = 0; r < registers; ++r)
      for (uint64_t t = 0; t < Tokens; ++t) sums[r][t] = reinterpret_cast<wide>(parts[r][t]);
  } else {
    in_memory(&sums);
    for (uint64_t i = 0; i < steps; i += steps_of_part)
      add_part<Tokens>(codes + i * registers * line, least(steps - i, steps_of_part), q + 4 * i,
                       stride, sums);
  }
}

// Reads the requested rows of the panel from y, for one token. `y` points to the first of them.
template <class Register>
inline void read_rows(const panel& w, const float* y, Register (&out)[registers]) {
  if (w.last - w.first == panel_rows) return std::memcpy(out, y, sizeof out), void();
  std::memcpy(reinterpret_cast<uint8_t*>(out) + 4 * w.first, y, 4 * (w.last - w.first));
}
template <class Register>
inline void write_rows(const panel& w, const Register (&rows)[registers], float* y) {
  if (w.last - w.first == panel_rows) return std::memcpy(y, rows, sizeof rows), void();
  std::memcpy(y, reinterpret_cast<const uint8_t*>(rows) + 4 * w.first, 4 * (w.last - w.first));
}

// Writes the sums of token t without groups, after subtracting q_sum: unchanged if the row
// continues, else divided and multiplied by the scales.
inline void write_sums(const panel_tile& a, const panel& w, uint64_t t, wide (&row)[registers],
                       float* y) {
  if (!a.ends) return write_rows(w, row, y);
  const float scale = a.q_scales[t * a.q_scales_stride];
  floats out[registers];
  for (uint64_t r = 0; r < registers; ++r) {
    const floats sum = __builtin_convertvector(row[r], floats);
    out[r] =
        a.one_scale ? sum / scale * w.row_scales[r] : (floats{} + sum * w.row_scales[r]) / scale;
  }
  write_rows(w, out, y);
}

// Without groups: elements of a slice of a panel, 16 KB of codes. It stays in the first-level cache
// while all tokens pass; the sums are kept in memory meanwhile.
constexpr uint64_t slice = 16384 / panel_rows;
struct waiting_sums {
  alignas(64) wide of[widest_panel.tokens][registers];
};

// n elements from `element` on. q_sums: by token, of all elements.
template <uint64_t Tokens>
void whole_rows(const panel_tile& a, panel& w, uint64_t element, uint64_t n, const int32_t* q_sums,
                uint64_t t0, waiting_sums& waiting, float* y) {
  wide sums[registers][Tokens];
  for (uint64_t t = 0; t < Tokens; ++t) {
    wide before[registers] = {};
    if (element != 0)
      std::memcpy(before, waiting.of[t0 + t], sizeof before);
    else if (a.goes_on)
      read_rows(w, y + t * a.y_stride, before);
    for (uint64_t r = 0; r < registers; ++r)
      sums[r][t] = element == 0 ? before[r] + q_sums[t0 + t] : before[r];
  }
  const int8_t* q = a.q + t0 * a.q_stride + element;
  for (uint64_t i = 0; i < n / 4; i += steps_of_line) {
    w.next.prefetch();
    add_products<Tokens>(w.codes[i][0], least(n / 4 - i, steps_of_line), q + 4 * i, a.q_stride,
                         sums);
  }
  for (uint64_t t = 0; t < Tokens; ++t) {
    wide row[registers];
    for (uint64_t r = 0; r < registers; ++r) row[r] = sums[r][t];
    if (element + n != a.k)
      std::memcpy(waiting.of[t0 + t], row, sizeof row);
    else
      write_sums(a, w, t0 + t, row, y + t * a.y_stride);
  }
}

// The tokens from t on, Tokens at a time, then half as many.
template <uint64_t Tokens>
inline void every_token_of_slice(const panel_tile& a, panel& w, uint64_t element, uint64_t n,
                                 const int32_t* q_sums, uint64_t t, waiting_sums& waiting,
                                 float* y) {
  for (; t + Tokens <= a.tokens; t += Tokens)
    whole_rows<Tokens>(a, w, element, n, q_sums, t, waiting, y + t * a.y_stride);
  if constexpr (Tokens > 1)
    every_token_of_slice<Tokens / 2>(a, w, element, n, q_sums, t, waiting, y);
}

// Scales the sums of shorter group number g and adds them to `to`.
template <bool ByWeights, uint64_t Tokens>
inline void add_group(const panel_tile& a, panel& w, const int32_t* q_sums, uint64_t t0,
                      uint64_t group, uint64_t g, floats (&to)[registers][Tokens]) {
  const uint64_t groups = a.k / group;
  wide sums[registers][Tokens];
  for (uint64_t t = 0; t < Tokens; ++t) {
    const wide before = wide{} + q_sums[(t0 + t) * groups + g];
    for (uint64_t r = 0; r < registers; ++r) sums[r][t] = before;
  }
  w.next.prefetch();
  in_memory(&to);
  add_products<Tokens>(w.codes[g * group / 4][0], group / 4, a.q + t0 * a.q_stride + g * group,
                       a.q_stride, sums);
  for (uint64_t t = 0; t < Tokens; ++t)
    for (uint64_t r = 0; r < registers; ++r) {
      const floats sum = __builtin_convertvector(sums[r][t], floats);
      if constexpr (ByWeights)
        to[r][t] += sum * w.scales[g][r];
      else
        to[r][t] += sum * a.q_scales[(t0 + t) * a.q_scales_stride + g];
    }
}

template <grouped Groups, uint64_t Tokens>
void grouped_rows(const panel_tile& a, panel& w, const int32_t* q_sums, uint64_t t0, float* y) {
  floats sums[registers][Tokens];
  for (uint64_t t = 0; t < Tokens; ++t) {
    floats before[registers] = {};
    if (a.goes_on) read_rows(w, y + t * a.y_stride, before);
    for (uint64_t r = 0; r < registers; ++r) sums[r][t] = before[r];
  }
  if constexpr (Groups == grouped::weights || Groups == grouped::activations) {
    constexpr bool by_weights = Groups == grouped::weights;
    const uint64_t group = by_weights ? a.group : a.q_group;
    for (uint64_t g = 0; g < a.k / group; ++g)
      add_group<by_weights>(a, w, q_sums, t0, group, g, sums);
  } else {
    constexpr bool by_weights = Groups == grouped::shorter_weights;
    const uint64_t longer = by_weights ? a.q_group : a.group;
    const uint64_t shorter = by_weights ? a.group : a.q_group;
    for (uint64_t g = 0, i = 0; g < a.k / longer; ++g) {
      floats inner[registers][Tokens];
      for (uint64_t t = 0; t < Tokens; ++t)
        for (uint64_t r = 0; r < registers; ++r) inner[r][t] = floats{};
      for (; i < (g + 1) * longer / shorter; ++i)
        add_group<by_weights>(a, w, q_sums, t0, shorter, i, inner);
      for (uint64_t t = 0; t < Tokens; ++t)
        for (uint64_t r = 0; r < registers; ++r)
          if constexpr (by_weights)
            sums[r][t] += inner[r][t] * a.q_scales[(t0 + t) * a.q_scales_stride + g];
          else
            sums[r][t] += inner[r][t] * w.scales[g][r];
    }
  }
  for (uint64_t t = 0; t < Tokens; ++t) {
    floats out[registers];
    for (uint64_t r = 0; r < registers; ++r) {
      out[r] = sums[r][t];
      if (!a.ends) continue;
      if constexpr (Groups == grouped::weights)
        out[r] = out[r] / a.q_scales[(t0 + t) * a.q_scales_stride];
      if constexpr (Groups == grouped::activations) out[r] = floats{} + out[r] * w.row_scales[r];
    }
    write_rows(w, out, y + t * a.y_stride);
  }
}

// The tokens from t on, Tokens at a time, then half as many.
template <grouped Groups, uint64_t Tokens>
inline void every_token(const panel_tile& a, panel& w, const int32_t* q_sums, uint64_t t,
                        float* y) {
  for (; t + Tokens <= a.tokens; t += Tokens)
    grouped_rows<Groups, Tokens>(a, w, q_sums, t, y + t * a.y_stride);
  if constexpr (Tokens > 1) every_token<Groups, Tokens / 2>(a, w, q_sums, t, y);
}

// The lines of the panel that begins at `row`; `pieces` calls of prefetch() take all of them.
inline lines_ahead lines_of(const panel_tile& a, uint64_t row, uint64_t pieces) {
  const uint64_t each = a.unit == 0 ? 1 : rows_of_tile, end = a.skipped + a.rows;
  lines_ahead out{a.w + row / each * a.w_stride, a.w_stride, 0, 0, 0, 0};
  out.run_bytes = (a.k + 127) / 128 * (a.unit == 0 ? packed_group : a.unit);
  if (row < end) out.runs_left = (least(panel_rows, end - row) + each - 1) / each;
  out.lines_per_call = out.runs_left * (out.run_bytes / 64 + 1) / pieces + 1;
  return out;
}

struct whole_panel_room {
  panel w;
  waiting_sums waiting;
};

void every_whole_panel(const panel_tile& a) {
  static_assert(sizeof(whole_panel_room) <= panel_room_bytes);
  int32_t q_sums[widest_panel.tokens];
  sum_groups(a, a.k, q_sums);
  auto* const __restrict room = static_cast<whole_panel_room*>(a.room);
  panel& w = room->w;
  waiting_sums& waiting = room->waiting;
  const uint64_t pieces = (a.tokens / at_once + 1) * (a.k / (4 * steps_of_line) + 1);
  for (uint64_t row = 0; row < a.rows; row += panel_rows) {
    w.first = 0;
    w.last = least(a.rows - row, panel_rows);
    w.next = lines_of(a, row + panel_rows, pieces);
    for (uint64_t e = 0; e < a.k; e += slice) {
      const uint64_t n = least(a.k - e, slice);
      for (uint64_t r = 0; r < registers; ++r) fill_rows(a, row + r * lanes, r, e, n, w);
      every_token_of_slice<at_once>(a, w, e, n, q_sums, 0, waiting, a.y + row);
    }
  }
}

struct panel_room {
  panel w;
  int32_t q_sums[usual_panel.tokens * (usual_panel.k / 32)];
};

template <grouped Groups>
void every_panel(const panel_tile& a) {
  static_assert(sizeof(panel_room) <= panel_room_bytes);
  constexpr bool by_weights = Groups == grouped::weights || Groups == grouped::shorter_weights;
  auto* const __restrict room = static_cast<panel_room*>(a.room);
  int32_t* const q_sums = room->q_sums;
  const uint64_t group = by_weights ? a.group : a.q_group;
  sum_groups(a, group, q_sums);
  panel& w = room->w;
  const uint64_t end = a.skipped + a.rows;
  const uint64_t pieces = (a.tokens / at_once + 1) * (a.k / group + 1);
  for (uint64_t row = a.skipped / lanes * lanes; row < end; row += panel_rows) {
    w.first = a.skipped > row ? a.skipped - row : 0;
    w.last = least(end - row, panel_rows);
    for (uint64_t r = 0; r < registers; ++r)
      if constexpr (Groups == grouped::activations)
        fill_rows(a, row + r * lanes, r, 0, a.k, w);
      else
        fill_tiles(a, row + r * lanes, r, w);
    w.next = lines_of(a, row + panel_rows, pieces);
    every_token<Groups, at_once>(a, w, q_sums, 0, a.y + (row + w.first - a.skipped));
  }
}

inline void multiply_tile(const panel_tile& a) {
  if (a.group == 0 && a.q_group == 0) return every_whole_panel(a);
  if (a.group == 0) return every_panel<grouped::activations>(a);
  if (a.q_group == 0) return every_panel<grouped::weights>(a);
  if (a.q_group <= a.group) return every_panel<grouped::shorter_activations>(a);
  every_panel<grouped::shorter_weights>(a);
}

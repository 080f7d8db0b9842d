// LINEAR_TERNARY and LINEAR_TERNARY_GROUPED, cut to the sizes that the kernels take.

#include <algorithm>
#include <bit>
#include <numeric>
#include <string_view>

#include "bitnet/sdk/interpreter/row_copies.hpp"
#include "faster.hpp"
#include "ops.hpp"
#include "ternary_tiles.hpp"
#include "tuning.hpp"

namespace bitnet::cpu {
namespace {

// Tokens of a tile: with the rows of the largest tile, its sums take 16 KiB of the stack.
constexpr uint64_t tile_tokens = 32;

bool has_one_scale(const sdk::weight& w) {  // or one for each row
  return w.scale_group == 0 || w.scale_group == w.k;
}

// The rows to read. Steps that stream the rows also copy them after a while. A coded copy serves
// one token only, so only steps of one token make it.
const uint8_t* rows_read(const sdk::weight& w, uint64_t tokens, uint64_t first, uint64_t last) {
  if (w.copy == nullptr) return w.data;
  const bool coded = w.copy->coded();
  if (const uint8_t* there = w.copy->data()) return coded ? w.data : there;
  if (coded ? tokens == 1 : sdk::streams_weights(tokens)) w.copy->add(w.data, first, last);
  return w.data;
}

// All rows of a matrix in a form that a kernel reads.
struct rows_in_memory {
  const uint8_t* data;
  uint64_t stride;  // bytes between rows
  void (*kernel)(const ternary_tile&);
};

// One scale for the matrix or for each row.
void multiply_rows(const rows_in_memory& all, const sdk::weight& w, const int8_t* q, const float* s,
                   const output_columns& columns) {
  const auto [tokens, first, last, y] = columns;
  const tuning tuned = current_tuning();
  const uint64_t tile_rows = tuned.tile_rows;
  int32_t sums[tile_tokens * most_tile_rows];
  for (uint64_t r0 = first; r0 < last; r0 += tile_rows) {
    const uint64_t n = std::min(tile_rows, last - r0);
    for (uint64_t t0 = 0; t0 < tokens; t0 += tile_tokens) {
      const uint64_t n_tokens = std::min(tile_tokens, tokens - t0);
      all.kernel({.w = all.data + r0 * all.stride,
                  .w_stride = all.stride,
                  .q = q + t0 * w.k,
                  .q_stride = w.k,
                  .sums = sums,
                  .sums_stride = tile_rows,
                  .k = w.k,
                  .rows = n,
                  .tokens = n_tokens,
                  .ahead = tuned.ahead});
      for (uint64_t t = 0; t < n_tokens; ++t) {
        float* out = y + (t0 + t) * w.m + r0;
        const int32_t* sum = sums + t * tile_rows;
        const float scale = s[t0 + t];
        if (w.scale_group == 0)
          for (uint64_t r = 0; r < n; ++r)
            out[r] = static_cast<float>(sum[r]) / scale * w.scales[0];
        else
          for (uint64_t r = 0; r < n; ++r)
            out[r] = (0.0f + static_cast<float>(sum[r]) * w.scales[r0 + r]) / scale;
      }
    }
  }
}

// A copy with five weights in a byte is used for a single token: with more, products take longer
// than the memory. The original rows stay for those.
void multiply_rows(const isa_form& isa, const sdk::weight& w, const int8_t* q, const float* s,
                   const output_columns& columns) {
  const uint8_t* given = rows_read(w, columns.tokens, columns.first, columns.last);
  const uint8_t* fives = w.copy && w.copy->coded() ? w.copy->data() : nullptr;
  if (fives == nullptr || columns.tokens != 1)
    return multiply_rows({given, w.row_bytes, isa.ternary.run}, w, q, s, columns);
  linear_ternary_fives(isa, w, fives, q, s, columns);
  w.copy->spare(columns.count() * (w.row_bytes - w.copy->row_bytes()));
}

// Granularity in elements of cuts of a row with such groups; 0: no groups.
uint64_t whole_groups(uint64_t group, uint64_t activation_group) {
  return std::max(std::lcm(std::max(group, activation_group), uint64_t{128}), uint64_t{128});
}

// The most that a call for panels takes: elements, at which a row can be cut, and tokens. k 0:
// other kernels compute this product. `activation_group`: elements, or 0.
panel_size panel_block(const isa_form& isa, const sdk::weight& w, uint64_t activation_group,
                       uint64_t tokens) {
  constexpr panel_size none{0, 0};
  if (isa.panel.run == nullptr || w.k % 4 != 0) return none;
  if (!has_one_scale(w) && !w.rows_dropped()) return none;
  // Panels must have an instruction set that the kernel's id names.
  const bool rows = activation_group == 0 && has_one_scale(w);
  if (isa.panel.isa != std::string_view(rows ? isa.ternary.isa : isa.grouped.isa)) {
    if (!isa.both_named) return none;
    if (tokens < (rows ? fewest_tile_tokens : fewest_tile_tokens_in_groups)) return none;
  } else if (tokens < (rows ? fewest_panel_tokens : fewest_in_groups)) {
    return none;
  }
  const panel_size size = rows ? isa.whole_panel : usual_panel;
  const uint64_t k_multiple = whole_groups(has_one_scale(w) ? 0 : w.scale_group, activation_group);
  if (k_multiple > size.k) return none;
  const uint64_t most = size.k / k_multiple * k_multiple, blocks = (w.k + most - 1) / most;
  const uint64_t even = (w.k + blocks - 1) / blocks;
  return {(even + k_multiple - 1) / k_multiple * k_multiple, size.tokens};
}

// `kernel`: panels or tables. q_scales: of groups of activations, or of each token.
void multiply_panels(const tile_kernel<panel_tile>& kernel, const sdk::weight& w, const int8_t* q,
                     const float* q_scales, uint64_t activation_group,
                     const output_columns& columns, const panel_size& block, void* room) {
  const auto [tokens, first, last, y] = columns;
  panel_tile tile{};
  tile.room = room;
  tile.w_stride = w.row_bytes;
  tile.one_scale = w.scale_group == 0;
  if (has_one_scale(w)) {
    tile.scales = w.scales + (tile.one_scale ? 0 : first);
  } else {
    tile.unit = unit_bytes(w);
    tile.w_stride = tile_bytes(w);
    tile.skipped = first % rows_of_tile;
    tile.group = w.scale_group;
  }
  tile.q_stride = w.k;
  tile.q_group = activation_group;
  tile.q_scales_stride = activation_group == 0 ? 1 : w.k / activation_group;
  tile.y_stride = w.m;
  tile.rows = last - first;
  const uint8_t* all = rows_read(w, tokens, first, last);
  for (uint64_t t = 0; t < tokens; t += block.tokens) {
    tile.tokens = std::min(block.tokens, tokens - t);
    tile.y = y + t * w.m + first;
    for (uint64_t at = 0; at < w.k; at += block.k) {
      tile.w = tile.unit == 0
                   ? all + first * w.row_bytes + at / 4
                   : w.packed_data() + first / rows_of_tile * tile.w_stride + at / 128 * tile.unit;
      tile.q = q + t * w.k + at;
      tile.q_scales =
          q_scales + t * tile.q_scales_stride + (activation_group == 0 ? 0 : at / activation_group);
      tile.k = std::min(block.k, w.k - at);
      tile.goes_on = at != 0;
      tile.ends = at + block.k >= w.k;
      kernel(tile);
    }
  }
}

// Similar products are timed together: few tokens fill the registers of tables less, and few rows
// make them pay less. More classes would follow the shapes more closely, and each needs timings of
// its own. Only one instruction set computes in a process.
using timings_by_size = faster[2][3];
faster& timing_for(timings_by_size& known, uint64_t tokens, uint64_t rows) {
  return known[tokens < 32 ? 0 : 1][rows < 512 ? 0 : rows < 1024 ? 1 : 2];
}

// From this number of tokens on, rows are unpacked once; for fewer, the faster way is measured.
// With AVX-512 VNNI unpacking each time was 1.22 times as fast for 24 tokens, and about as fast for
// 48.
constexpr uint64_t fewest_sure_tokens = 64;

// Uses panels or tables.
void multiply_many(const isa_form& isa, const sdk::weight& w, const int8_t* q, const float* s,
                   const output_columns& columns, const panel_size& block, void* room) {
  const auto panels = [&] { multiply_panels(isa.panel, w, q, s, 0, columns, block, room); };
  if (isa.tables.run == nullptr || !has_one_scale(w) || columns.count() < fewest_table_rows)
    return panels();
  static timings_by_size known;
  timing_for(known, columns.tokens, columns.count())
      .run(columns.tokens * columns.count() * w.k, panels,
           [&] { multiply_panels(isa.tables, w, q, s, 0, columns, {w.k, tables_tokens}, room); });
}

// Rows [first, last) of w, from element `at` on, which is a multiple of 128.
grouped_tile groups_from(const sdk::weight& w, uint64_t first, uint64_t last, uint64_t at) {
  grouped_tile out{};
  out.ahead = current_tuning().ahead;
  out.rows = last - first;
  if (w.rows_dropped()) {
    out.unit = unit_bytes(w);
    out.w_stride = tile_bytes(w);
    out.w = w.packed_data() + first / rows_of_tile * out.w_stride + at / 128 * out.unit;
    out.skipped = first % rows_of_tile;
    return out;
  }
  out.w = w.row(first) + at / 4;
  out.w_stride = w.row_bytes;
  if (has_one_scale(w)) return out;
  out.scales_stride = w.k / w.scale_group;
  out.scales = w.scales + first * out.scales_stride + at / w.scale_group;
  return out;
}

// Most that one call of a kernel takes, with shorter groups of `group` elements.
struct call_size {
  uint64_t k, tokens;
};
// With few tokens, tiles are read from the first byte to the last; with many, as many tokens as
// possible share each read. If k is cut, it is a multiple of `step`.
call_size size_of_call(const sdk::weight& w, uint64_t tokens, uint64_t group, uint64_t step) {
  constexpr uint64_t few = 8;  // tokens
  const bool shared = w.rows_dropped() && tokens > 1, whole = w.rows_dropped() && tokens <= few;
  const uint64_t at_once = whole ? few : most_grouped_tokens;
  uint64_t most = most_group_sums / at_once * group;
  if (shared) most = std::min(most, most_shared_elements / at_once);
  const uint64_t k = w.k <= most ? w.k : std::max(most / step, uint64_t{1}) * step;
  // A power of two, because kernels pad a few tokens to a power of two.
  const auto fit = std::bit_floor(std::max(most_shared_elements / k, uint64_t{1}));
  return {k, shared ? std::min(fit, at_once) : at_once};
}

// A product with scales of groups of weights, of activations or of both.
struct grouped_product {
  const sdk::weight& w;
  const int8_t* q;
  output_columns columns;
  uint64_t own;  // elements of a group of weights
  void* room;
  const float* d = nullptr;  // (tokens, w.k / activation_group); nullptr: only weights have groups
  uint64_t activation_group = 0;  // elements of a group of activations
};

// The outer loop is over tiles of tokens, so that one read of the weights serves many. After each
// tile it calls done(first token, number of tokens, y of its first token).
template <class Done>
void each_tile(const grouped_product& p, const tile_kernel<grouped_tile>& kernel,
               const Done& done) {
  const sdk::weight& w = p.w;
  const output_columns& columns = p.columns;
  const uint64_t activation_group = p.d ? p.activation_group : p.own;
  const call_size most = size_of_call(w, columns.tokens, std::min(p.own, activation_group),
                                      std::lcm(std::max(p.own, activation_group), uint64_t{128}));
  for (uint64_t t0 = 0; t0 < columns.tokens; t0 += most.tokens) {
    const uint64_t tokens = std::min(most.tokens, columns.tokens - t0);
    float* out = columns.y + t0 * w.m + columns.first;
    for (uint64_t at = 0; at < w.k; at += most.k) {
      grouped_tile tile = groups_from(w, columns.first, columns.last, at);
      tile.q = p.q + t0 * w.k + at;
      tile.q_stride = w.k;
      tile.y = out;
      tile.y_stride = w.m;
      tile.group = p.own;
      tile.groups = std::min(most.k, w.k - at) / p.own;
      tile.tokens = tokens;
      tile.goes_on = at != 0;
      tile.room = p.room;
      if (p.d) {
        tile.q_scales_stride = w.k / activation_group;
        tile.q_scales = p.d + t0 * tile.q_scales_stride + at / activation_group;
        tile.q_group = activation_group;
      }
      kernel(tile);
    }
    done(t0, tokens, out);
  }
}

void multiply_groups(const isa_form& isa, const sdk::weight& w, const int8_t* q, const float* s,
                     const output_columns& columns, void* room) {
  each_tile({w, q, columns, w.scale_group, room}, isa.grouped,
            [&](uint64_t t0, uint64_t n_tokens, float* out) {
              for (uint64_t t = 0; t < n_tokens; ++t)
                for (uint64_t r = 0; r < columns.count(); ++r) out[t * w.m + r] /= s[t0 + t];
            });
}

}  // namespace

void linear_ternary_grouped(const isa_form& isa, const sdk::weight& w, const int8_t* q,
                            const float* d, uint64_t groups, const output_columns& columns,
                            void* room) {
  const uint64_t activation_group = w.k / groups;
  const bool one_scale = has_one_scale(w);
  if (const panel_size block = panel_block(isa, w, activation_group, columns.tokens); block.k != 0)
    return multiply_panels(isa.panel, w, q, d, activation_group, columns, block, room);
  const auto& kernel = grouped_has_vector_form(w) ? isa.grouped : scalar_form.grouped;
  each_tile(
      {w, q, columns, one_scale ? activation_group : w.scale_group, room, d, activation_group},
      kernel, [&](uint64_t, uint64_t n_tokens, float* out) {
        if (!one_scale) return;
        for (uint64_t t = 0; t < n_tokens; ++t)
          for (uint64_t r = 0; r < columns.count(); ++r)
            out[t * w.m + r] =
                0.0f + out[t * w.m + r] * w.scales[w.scale_group == 0 ? 0 : columns.first + r];
      });
}

void linear_ternary_fives(const isa_form& isa, const sdk::weight& w, const uint8_t* fives,
                          const int8_t* q, const float* s, const output_columns& columns) {
  multiply_rows({fives, fives_row_bytes(w.k), isa.fives.run}, w, q, s, columns);
}

bool has_fives(const isa_form& isa) {
  return isa.fives.supported != nullptr && isa.fives.supported();
}

sdk::copy_code fives_code(const isa_form& isa) {
  if (!has_fives(isa)) return {};
  return {[](const sdk::weight& w) -> uint64_t {
            const uint64_t bytes = fives_row_bytes(w.k);
            const bool gains = has_one_scale(w) && w.k % 64 == 0 && 10 * bytes <= 9 * w.row_bytes;
            return gains && current_tuning().fives ? bytes : 0;
          },
          [](const sdk::weight& w, const void* author_data, uint64_t first, uint64_t last,
             uint8_t* out) noexcept {
            const auto& form = *static_cast<const isa_form*>(author_data);
            return form.fives.code({w.row(first), w.row_bytes, out, w.k, last - first});
          }};
}

bool panels_fit_rows(const sdk::weight& w) {
  return has_one_scale(w) && w.k % 4 == 0;
}

bool panels_fit_tiles(const sdk::weight& w) {
  return !has_one_scale(w) && unit_bytes(w) != 0 && whole_groups(w.scale_group, 0) <= usual_panel.k;
}

bool grouped_has_vector_form(const sdk::weight& w) {
  return has_one_scale(w) || w.scale_group % 128 == 0 || 128 % w.scale_group == 0 ||
         w.k <= most_groups * 32;
}

ternary_path path_of(const sdk::weight& w) {
  if (has_one_scale(w)) return ternary_path::rows;
  return w.scale_group % 32 == 0 ? ternary_path::groups : ternary_path::reference;
}

// Many tokens: panels or tables. Few tokens, or panels do not fit: rows or groups, by path_of. In
// between, for rows of one scale, the faster one is measured.
void linear_ternary(const isa_form& isa, const sdk::weight& w, const int8_t* q, const float* s,
                    const output_columns& columns, void* room) {
  if (const panel_size block = panel_block(isa, w, 0, columns.tokens); block.k != 0) {
    const auto many = [&] { multiply_many(isa, w, q, s, columns, block, room); };
    if (columns.tokens >= fewest_sure_tokens || !has_one_scale(w) || isa.both_named) return many();
    static timings_by_size known;
    return timing_for(known, columns.tokens, columns.count())
        .run(columns.tokens * columns.count() * w.k, many,
             [&] { multiply_rows(isa, w, q, s, columns); });
  }
  switch (path_of(w)) {
    case ternary_path::rows:
      return multiply_rows(isa, w, q, s, columns);
    case ternary_path::groups:
      return multiply_groups(isa, w, q, s, columns, room);
    case ternary_path::reference:
      return linear_ternary_ref(w, q, s, columns);
  }
}

}  // namespace bitnet::cpu

// LINEAR_TERNARY in tiles: integer sums by the chosen instruction set, scales here or there.

#include <algorithm>

#include "ops.hpp"
#include "tuning.hpp"

namespace bitnet::cpu {
namespace {

constexpr uint64_t tile_tokens = 32;

// One scale for the matrix or for each row.
void multiply_rows(const isa_form& isa, const sdk::weight& w, const int8_t* q, const float* s,
                   uint64_t rows, uint64_t first, uint64_t last, float* y) {
  const tuning tuned = current_tuning();
  const uint64_t tile_rows = tuned.tile_rows;
  int32_t sums[tile_tokens * most_tile_rows];
  for (uint64_t r0 = first; r0 < last; r0 += tile_rows) {
    const uint64_t n = std::min(tile_rows, last - r0);
    for (uint64_t t0 = 0; t0 < rows; t0 += tile_tokens) {
      const uint64_t tokens = std::min(tile_tokens, rows - t0);
      isa.ternary({w.row(r0), w.row_bytes, q + t0 * w.k, w.k, sums, tile_rows, w.k, n, tokens,
                   tuned.ahead});
      for (uint64_t t = 0; t < tokens; ++t) {
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

// Tiles of tokens outside: what is read of the weights serves many of them.
void multiply_groups(const isa_form& isa, const sdk::weight& w, const int8_t* q, const float* s,
                     uint64_t rows, uint64_t first, uint64_t last, float* y) {
  const uint64_t group = w.scale_group, groups = w.k / group, n = last - first;
  const uint64_t ahead = current_tuning().ahead;
  for (uint64_t t0 = 0; t0 < rows; t0 += most_grouped_tokens) {
    const uint64_t tokens = std::min(most_grouped_tokens, rows - t0);
    float* out = y + t0 * w.m + first;
    for (uint64_t g = 0; g < groups; g += most_groups)
      isa.grouped({w.row(first) + g * group / 4, w.row_bytes, q + t0 * w.k + g * group, w.k,
                   w.scales + first * groups + g, groups, out, w.m, group,
                   std::min(most_groups, groups - g), n, tokens, g != 0, ahead});
    for (uint64_t t = 0; t < tokens; ++t)
      for (uint64_t r = 0; r < n; ++r) out[t * w.m + r] /= s[t0 + t];
  }
}

}  // namespace

void linear_ternary_grouped(const isa_form& isa, const sdk::weight& w, const int8_t* q,
                            const float* d, uint64_t groups, uint64_t rows, uint64_t first,
                            uint64_t last, float* y) {
  const uint64_t given = w.k / groups;
  const bool one_scale = w.scale_group == 0 || w.scale_group == w.k;
  const uint64_t own = one_scale ? given : w.scale_group, n = last - first;
  const uint64_t longer = std::max(own, given), own_groups = w.k / own;
  const uint64_t part =  // elements of a row at a time
      std::min(w.k, std::max(most_groups * std::min(own, given) / longer, uint64_t{1}) * longer);
  const uint64_t ahead = current_tuning().ahead;
  for (uint64_t t0 = 0; t0 < rows; t0 += most_grouped_tokens) {
    const uint64_t tokens = std::min(most_grouped_tokens, rows - t0);
    float* out = y + t0 * w.m + first;
    for (uint64_t at = 0; at < w.k; at += part) {
      const uint64_t width = std::min(part, w.k - at);
      grouped_tile tile{w.row(first) + at / 4,
                        w.row_bytes,
                        q + t0 * w.k + at,
                        w.k,
                        nullptr,
                        0,
                        out,
                        w.m,
                        own,
                        width / own,
                        n,
                        tokens,
                        at != 0,
                        ahead};
      if (!one_scale) {
        tile.scales = w.scales + first * own_groups + at / own;
        tile.scales_stride = own_groups;
      }
      tile.q_scales = d + t0 * groups + at / given;
      tile.q_scales_stride = groups;
      tile.q_group = given;
      isa.grouped(tile);
    }
    if (!one_scale) continue;
    for (uint64_t t = 0; t < tokens; ++t)
      for (uint64_t r = 0; r < n; ++r)
        out[t * w.m + r] = 0.0f + out[t * w.m + r] * w.scales[w.scale_group == 0 ? 0 : first + r];
  }
}

ternary_path path_of(const sdk::weight& w) {
  if (w.scale_group == 0 || w.scale_group == w.k) return ternary_path::rows;
  return w.scale_group % 32 == 0 ? ternary_path::groups : ternary_path::reference;
}

void linear_ternary(const isa_form& isa, const sdk::weight& w, const int8_t* q, const float* s,
                    uint64_t rows, uint64_t first, uint64_t last, float* y) {
  switch (path_of(w)) {
    case ternary_path::rows:
      return multiply_rows(isa, w, q, s, rows, first, last, y);
    case ternary_path::groups:
      return multiply_groups(isa, w, q, s, rows, first, last, y);
    case ternary_path::reference:
      return linear_ternary_ref(w, q, s, rows, first, last, y);
  }
}

}  // namespace bitnet::cpu

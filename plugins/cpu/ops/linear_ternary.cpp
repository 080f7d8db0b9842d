// LINEAR_TERNARY in tiles: integer sums by the chosen instruction set, scales here.

#include <algorithm>

#include "ops.hpp"
#include "tuning.hpp"

namespace bitnet::cpu {
namespace {

constexpr uint64_t tile_tokens = 32;

}  // namespace

void linear_ternary(const isa_form& isa, const sdk::weight& w, const int8_t* q, const float* s,
                    uint64_t rows, uint64_t first, uint64_t last, float* y) {
  // Groups that start within a packed group of 128; a row that is one group cannot.
  if (w.scale_group % 128 != 0 && w.scale_group != w.k) {
    linear_ternary_ref(w, q, s, rows, first, last, y);
    return;
  }
  const uint64_t group = w.scale_group == 0 ? w.k : w.scale_group;
  const uint64_t groups = w.k / group;
  const tuning tuned = current_tuning();
  const uint64_t tile_rows = tuned.tile_rows;
  int32_t sums[tile_tokens * most_tile_rows];
  for (uint64_t r0 = first; r0 < last; r0 += tile_rows) {
    const uint64_t n = std::min(tile_rows, last - r0);
    for (uint64_t t0 = 0; t0 < rows; t0 += tile_tokens) {
      const uint64_t tokens = std::min(tile_tokens, rows - t0);
      for (uint64_t g = 0; g < groups; ++g) {
        isa.ternary({w.row(r0) + g * group / 4, w.row_bytes, q + t0 * w.k + g * group, w.k, sums,
                     tile_rows, group, n, tokens, tuned.ahead});
        for (uint64_t t = 0; t < tokens; ++t) {
          float* out = y + (t0 + t) * w.m + r0;
          const int32_t* sum = sums + t * tile_rows;
          const float scale = s[t0 + t];
          if (w.scale_group == 0) {
            for (uint64_t r = 0; r < n; ++r)
              out[r] = static_cast<float>(sum[r]) / scale * w.scales[0];
            continue;
          }
          const float* scales = w.scales + r0 * groups + g;
          for (uint64_t r = 0; r < n; ++r)
            out[r] = (g == 0 ? 0.0f : out[r]) + static_cast<float>(sum[r]) * scales[r * groups];
          if (g + 1 == groups)
            for (uint64_t r = 0; r < n; ++r) out[r] /= scale;
        }
      }
    }
  }
}

}  // namespace bitnet::cpu

// The reference of linear_grouped.hpp: every other form returns the same bits.
#include "linear_grouped.hpp"

#include <cstring>

namespace bitnet::cpu {
namespace {

// Address of bytes 4 i to 4 i + 3 of the packed group of row r that contains element `at`.
const uint8_t* codes_of(const grouped_tile& a, uint64_t r, uint64_t at, uint64_t i) {
  if (a.unit == 0) return a.w + r * a.w_stride + at / 128 * 32 + 4 * i;
  const uint64_t row = a.skipped + r;
  return a.w + row / rows_of_tile * a.w_stride + (at / 128 + 1) * a.unit -
         (tile_lines - i) * tile_line + row % rows_of_tile * 4;
}

float scale_of(const grouped_tile& a, uint64_t r, uint64_t at) {
  if (a.unit == 0) return a.scales[r * a.scales_stride + at / a.group];
  const uint64_t row = a.skipped + r;
  float scale = 0;
  std::memcpy(&scale,
              a.w + row / rows_of_tile * a.w_stride + at / 128 * a.unit +
                  (a.group < 128 ? at % 128 / a.group * tile_line : 0) + row % rows_of_tile * 4,
              sizeof scale);
  return scale;
}

}  // namespace

void linear_grouped_scalar(const grouped_tile& a) {
  const bool has_own = a.unit != 0 || a.scales;
  for (uint64_t t = 0; t < a.tokens; ++t) {
    for (uint64_t r = 0; r < a.rows; ++r) {
      const int8_t* q = a.q + t * a.q_stride;
      float& y = a.y[t * a.y_stride + r];
      if (!a.goes_on) y = 0;
      const uint64_t q_group = a.q_scales ? a.q_group : a.group;
      const uint64_t shorter = q_group < a.group ? q_group : a.group;
      const uint64_t longer = q_group < a.group ? a.group : q_group;
      float inner = 0;
      for (uint64_t g = 0; g < a.groups * a.group / shorter; ++g) {
        int32_t sum = 0;
        // 32 elements are the same pair of bits in 32 bytes.
        for (uint64_t at = g * shorter; at < (g + 1) * shorter; at += 32, q += 32) {
          const uint64_t shift = 6 - 2 * (at / 32 % 4);
          for (uint64_t i = 0; i < 32; i += 4) {
            const uint8_t* four = codes_of(a, r, at, i / 4);
            for (uint64_t j = 0; j < 4; ++j) sum += ((four[j] >> shift & 3) - 1) * q[i + j];
          }
        }
        const uint64_t at = g * shorter;
        const auto given = [&] { return a.q_scales[t * a.q_scales_stride + at / q_group]; };
        if (!has_own || !a.q_scales) {
          y += static_cast<float>(sum) * (has_own ? scale_of(a, r, at) : given());
          continue;
        }
        inner += static_cast<float>(sum) * (q_group <= a.group ? given() : scale_of(a, r, at));
        if ((g + 1) * shorter % longer != 0) continue;
        y += inner * (q_group <= a.group ? scale_of(a, r, at) : given());
        inner = 0;
      }
    }
  }
}

}  // namespace bitnet::cpu

#include "ternary_tiles.hpp"

#include <cstring>

#include "ops.hpp"

namespace bitnet::cpu {
namespace {

constexpr uint64_t packed_group = 128;  // elements; 32 bytes

uint64_t packed_groups(const sdk::weight& w) {
  return (w.k + packed_group - 1) / packed_group;
}

uint64_t bytes_of(const sdk::weight& w) {
  return unit_bytes(w) == 0 ? 0 : (w.m + rows_of_tile - 1) / rows_of_tile * tile_bytes(w);
}

void pack(const sdk::weight& w, const void*, uint64_t first, uint64_t last, uint8_t* out) noexcept {
  const uint64_t unit = unit_bytes(w), codes = unit - tile_lines * tile_line;
  const uint64_t in_unit = codes / tile_line, groups = w.k / w.scale_group;
  for (uint64_t r = first; r < last; ++r) {
    uint8_t* to = out + r / rows_of_tile * tile_bytes(w) + r % rows_of_tile * 4;
    const uint8_t* row = w.row(r);
    for (uint64_t g = 0; g < packed_groups(w); ++g, row += 32, to += unit) {
      for (uint64_t i = 0; i < in_unit; ++i) {
        const uint64_t at = g * packed_group / w.scale_group + i;
        if (at < groups) std::memcpy(to + i * tile_line, w.scales + r * groups + at, sizeof(float));
      }
      for (uint64_t i = 0; i < tile_lines; ++i)
        std::memcpy(to + codes + i * tile_line, row + 4 * i, 4);
    }
  }
}

}  // namespace

uint64_t unit_bytes(const sdk::weight& w) {
  if (path_of(w) != ternary_path::groups) return 0;
  if (packed_group % w.scale_group == 0)
    return (packed_group / w.scale_group + tile_lines) * tile_line;
  return w.scale_group % packed_group == 0 ? (1 + tile_lines) * tile_line : 0;
}

uint64_t tile_bytes(const sdk::weight& w) {
  return packed_groups(w) * unit_bytes(w);
}

sdk::packing in_tiles() {
  return {"cpu/ternary2-tiles/1", bytes_of, pack, true, rows_of_tile, true};
}

void row_of_tiles(const sdk::weight& w, uint64_t r, float* y) {
  const uint64_t unit = unit_bytes(w), codes = unit - tile_lines * tile_line;
  const uint8_t* from = w.packed_data() + r / rows_of_tile * tile_bytes(w) + r % rows_of_tile * 4;
  for (uint64_t i = 0; i < w.k; ++i) {
    const uint8_t* at = from + i / packed_group * unit;
    float scale = 0;
    const uint64_t of_group = i % packed_group / w.scale_group;  // 0 for longer groups
    std::memcpy(&scale, at + of_group * tile_line, sizeof scale);
    const uint64_t byte = i % 32;
    const int code = at[codes + byte / 4 * tile_line + byte % 4] >> (6 - i % packed_group / 32 * 2);
    y[i] = static_cast<float>((code & 3) - 1) * scale;
  }
}

}  // namespace bitnet::cpu

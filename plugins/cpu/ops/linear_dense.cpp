// LINEAR_DENSE: rows of K and 4-bit formats are decoded first; the sums have the same order, so the
// bits are those of the scalar form.

#include <algorithm>

#include "ops.hpp"

namespace bitnet::cpu {
namespace {

bool is_direct(uint32_t format) {  // what isa_form::dense reads
  return format == BITNET_FORMAT_F32 || format == BITNET_FORMAT_F16 ||
         format == BITNET_FORMAT_BF16 || format == BITNET_FORMAT_Q8_0;
}

}  // namespace

void decode_row(const isa_form& isa, const sdk::weight& w, uint64_t row, float* y) {
  switch (w.format) {
    case BITNET_FORMAT_F16:
      return isa.rows.widen(w.row(row), w.k, y);
    case BITNET_FORMAT_Q4_0:
      return isa.rows.from_q4_0(w.row(row), w.k, y);
    case BITNET_FORMAT_Q4_K:
      return isa.rows.from_q4_k(w.row(row), w.k, y);
    case BITNET_FORMAT_Q6_K:
      return isa.rows.from_q6_k(w.row(row), w.k, y);
    default:
      return sdk::decode(w.format, w.row(row), 0, w.k, y);
  }
}

void linear_dense(const isa_form& isa, const sdk::weight& w, const float* x, uint64_t rows,
                  uint64_t first, uint64_t last, float* y) {
  const bool direct = is_direct(w.format);
  constexpr uint64_t room = 16384;  // elements on the stack: 64 KB
  if (!direct && w.k <= room) {
    float decoded[room];
    const uint64_t together = 4 * w.k <= room ? 4 : 1;  // rows of a tile
    for (uint64_t r = first; r < last; r += together) {
      const uint64_t n = std::min(together, last - r);
      for (uint64_t i = 0; i < n; ++i) decode_row(isa, w, r + i, decoded + i * w.k);
      isa.dense({BITNET_FORMAT_F32, reinterpret_cast<const uint8_t*>(decoded), 4 * w.k, x, w.k,
                 y + r, w.m, w.k, n, rows});
    }
    return;
  }
  const auto run = direct ? isa.dense : scalar_form.dense;
  constexpr uint64_t tile_rows = 16;  // stay in the first cache while the tokens pass by
  for (uint64_t r = first; r < last; r += tile_rows)
    run({w.format, w.row(r), w.row_bytes, x, w.k, y + r, w.m, w.k, std::min(tile_rows, last - r),
         rows});
}

}  // namespace bitnet::cpu

// LINEAR_DENSE: the chosen instruction set where it has the format. Rows of other formats are
// decoded first; the sums have the same order, so the bits are those of the scalar form.

#include <algorithm>

#include "ops.hpp"

namespace bitnet::cpu {

void linear_dense(const isa_form& isa, const sdk::weight& w, const float* x, uint64_t rows,
                  uint64_t first, uint64_t last, float* y) {
  const bool fast = w.format == BITNET_FORMAT_F32 || w.format == BITNET_FORMAT_F16 ||
                    w.format == BITNET_FORMAT_BF16 || w.format == BITNET_FORMAT_Q8_0;
  constexpr uint64_t widest = 16384;  // a row on the stack: 64 KB
  if (!fast && w.k <= widest) {
    float row[widest];
    for (uint64_t r = first; r < last; ++r) {
      sdk::decode(w.format, w.row(r), 0, w.k, row);
      isa.dense({BITNET_FORMAT_F32, reinterpret_cast<const uint8_t*>(row), 0, x, w.k, y + r, w.m,
                 w.k, 1, rows});
    }
    return;
  }
  const auto run = fast ? isa.dense : scalar_form.dense;
  constexpr uint64_t tile_rows = 16;  // stay in the first cache while the tokens pass by
  for (uint64_t r = first; r < last; r += tile_rows)
    run({w.format, w.row(r), w.row_bytes, x, w.k, y + r, w.m, w.k, std::min(tile_rows, last - r),
         rows});
}

}  // namespace bitnet::cpu

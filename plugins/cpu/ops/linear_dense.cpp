// LINEAR_DENSE: the chosen instruction set where it has the format, the scalar form elsewhere.

#include <algorithm>

#include "ops.hpp"

namespace bitnet::cpu {

void linear_dense(const isa_form& isa, const sdk::weight& w, const float* x, uint64_t rows,
                  uint64_t first, uint64_t last, float* y) {
  const bool fast = w.format == BITNET_FORMAT_F32 || w.format == BITNET_FORMAT_F16 ||
                    w.format == BITNET_FORMAT_BF16 || w.format == BITNET_FORMAT_Q8_0;
  const auto run = fast ? isa.dense : scalar_form.dense;
  constexpr uint64_t tile_rows = 16;  // stay in the first cache while the tokens pass by
  for (uint64_t r = first; r < last; r += tile_rows)
    run({w.format, w.row(r), w.row_bytes, x, w.k, y + r, w.m, w.k, std::min(tile_rows, last - r),
         rows});
}

}  // namespace bitnet::cpu

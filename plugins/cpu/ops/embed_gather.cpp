#include "ops.hpp"
#include "ternary_tiles.hpp"

namespace bitnet::cpu {

void embed_row(const sdk::weight& table, uint64_t token, float* y) {
  if (table.rows_dropped()) return row_of_tiles(table, token, y);
  const uint8_t* row = table.row(token);
  sdk::decode(table.format, row, 0, table.k, y);
  if (table.format != BITNET_FORMAT_TERNARY2) return;
  for (uint64_t i = 0; i < table.k; ++i)
    y[i] *= table.scales[table.scale_group == 0 ? 0 : (token * table.k + i) / table.scale_group];
}

}  // namespace bitnet::cpu

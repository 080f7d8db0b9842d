#include "tile_emulator.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

namespace bitnet::parity {
namespace {

constexpr int tiles = 8, most_rows = 16, most_bytes = 64;

struct registers {
  bool configured;
  cpu::tile_shapes shapes;
  uint8_t tile[tiles][most_rows][most_bytes];
  uint64_t products;
};
thread_local registers now;

void demand(bool fine, const char* what) {
  if (fine) return;
  std::fprintf(stderr, "emulated tiles: %s\n", what);
  std::abort();
}

void demand_tile(int tile) {
  demand(now.configured, "none are configured");
  demand(tile >= 0 && tile < tiles, "there is no such tile");
  demand(now.shapes.rows[tile] != 0, "this one is not configured");
}

// B: the bytes of the second operand.
template <class B>
void add_products(int c, int a, int b) {
  for (const int tile : {c, a, b}) demand_tile(tile);
  demand(c != a && c != b && a != b, "a product needs three different tiles");
  const cpu::tile_shapes& s = now.shapes;
  for (const int tile : {c, a, b})
    demand(s.row_bytes[tile] % 4 == 0, "rows are no multiple of four bytes");
  demand(s.rows[c] == s.rows[a], "the sums have other rows than the first operand");
  demand(s.row_bytes[c] == s.row_bytes[b], "the sums have other columns than the second operand");
  demand(s.row_bytes[a] == 4 * s.rows[b], "the operands do not meet");
  for (int m = 0; m < s.rows[c]; ++m)
    for (int n = 0; n < s.row_bytes[c] / 4; ++n) {
      uint32_t sum = 0;  // wraps as the processor's does
      std::memcpy(&sum, now.tile[c][m] + 4 * n, sizeof sum);
      for (int k = 0; k < s.rows[b]; ++k)
        for (int i = 0; i < 4; ++i) {
          const int product = static_cast<int8_t>(now.tile[a][m][4 * k + i]) *
                              static_cast<B>(now.tile[b][k][4 * n + i]);
          sum += static_cast<uint32_t>(product);
        }
      std::memcpy(now.tile[c][m] + 4 * n, &sum, sizeof sum);
    }
  ++now.products;
}

}  // namespace

void emulate_ldtilecfg(const cpu::tile_shapes& shapes) {
  static_assert(sizeof shapes == 64);
  demand(shapes.palette == 1, "palette is not 1");
  demand(shapes.start_row == 0, "an interrupted load is not emulated");
  for (const uint8_t byte : shapes.reserved) demand(byte == 0, "reserved bytes are not zero");
  for (int i = 0; i < most_rows; ++i) {
    const int rows = shapes.rows[i], bytes = shapes.row_bytes[i];
    demand(i < tiles || (rows == 0 && bytes == 0), "there are eight");
    demand(rows <= most_rows && bytes <= most_bytes, "a tile is too large");
    demand((rows == 0) == (bytes == 0), "a tile has rows of no bytes, or no rows of some");
  }
  const uint64_t products = now.products;
  now = {};
  now.products = products;
  now.configured = true;
  now.shapes = shapes;
}

void emulate_tilerelease() {
  demand(now.configured, "released twice");  // a mistake, though the processor allows it
  const uint64_t products = now.products;
  now = {};
  now.products = products;
}

void emulate_tilezero(int tile) {
  demand_tile(tile);
  std::memset(now.tile[tile], 0, sizeof now.tile[tile]);
}

void emulate_tileloadd(int tile, const void* from, uint64_t stride) {
  demand_tile(tile);
  std::memset(now.tile[tile], 0, sizeof now.tile[tile]);
  for (int row = 0; row < now.shapes.rows[tile]; ++row)
    std::memcpy(now.tile[tile][row],
                static_cast<const uint8_t*>(from) + static_cast<uint64_t>(row) * stride,
                now.shapes.row_bytes[tile]);
}

void emulate_tilestored(int tile, void* to, uint64_t stride) {
  demand_tile(tile);
  for (int row = 0; row < now.shapes.rows[tile]; ++row)
    std::memcpy(static_cast<uint8_t*>(to) + static_cast<uint64_t>(row) * stride,
                now.tile[tile][row], now.shapes.row_bytes[tile]);
}

void emulate_tdpbsud(int c, int a, int b) {
  add_products<uint8_t>(c, a, b);
}

void emulate_tdpbssd(int c, int a, int b) {
  add_products<int8_t>(c, a, b);
}

bool emulator_is_configured() {
  return now.configured;
}

uint64_t emulated_products() {
  return now.products;
}

}  // namespace bitnet::parity

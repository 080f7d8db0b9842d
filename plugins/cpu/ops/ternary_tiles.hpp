#pragma once
// Ternary weights with scale groups in the form that linear_grouped reads fastest: sixteen rows
// together, scales beside their codes, one stream over the whole matrix.
// kernels/linear_grouped.hpp, Tiles, defines the layout.

#include <cstdint>

#include "bitnet/sdk/interpreter/kernel.hpp"

namespace bitnet::cpu {

// Bytes of a unit; 0: the weight has no tiles.
uint64_t unit_bytes(const sdk::weight& w);
// Bytes of a tile. Call it only if unit_bytes is not 0.
uint64_t tile_bytes(const sdk::weight& w);

// The packing that replaces the rows.
sdk::packing in_tiles();

// y (k) = row r of a packed weight.
void row_of_tiles(const sdk::weight& w, uint64_t r, float* y);

}  // namespace bitnet::cpu

#pragma once
// Ternary weights with scale groups as linear_grouped reads them fastest: sixteen rows together,
// scales beside their codes, one stream from the first byte of a matrix to its last. What lies
// where is defined in kernels/linear_grouped.hpp, Tiles.

#include <cstdint>

#include "bitnet/sdk/interpreter/kernel.hpp"

namespace bitnet::cpu {

// Bytes of a unit; 0: the weight is none of these.
uint64_t unit_bytes(const sdk::weight& w);
// Bytes of a tile; needs unit_bytes.
uint64_t tile_bytes(const sdk::weight& w);

// In place of the rows.
sdk::packing in_tiles();

// y (k) = row r of a packed weight.
void row_of_tiles(const sdk::weight& w, uint64_t r, float* y);

}  // namespace bitnet::cpu

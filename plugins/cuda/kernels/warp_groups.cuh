#pragma once
// Common parts of products by warp groups of sm_90: stages that the copy engine fills, codes of a
// stage in registers, and the tiles of a group.

#include "fragments.cuh"
#include "tiles.hpp"

namespace bitnet::kernels {

// Of a warp group: so many tiles of 64 rows by Tokens columns.
template <uint32_t Tiles, uint32_t Tokens>
struct warp_group_shape {
  static constexpr uint32_t tiles = Tiles, tokens = Tokens, sums = Tokens / 2;
  static constexpr uint32_t rows_of_group = Tiles * 64, rows = multiplying_groups * rows_of_group;
  // Of a stage: two boxes of activations, in rows of 128 bytes, and one of codes, in rows of 64.
  static constexpr uint32_t box = Tokens * 128, codes = 2 * box, stage = codes + rows * 64;
};

constexpr uint32_t consumers =
    multiplying_groups * 4;  // warps; those that copy are the ones behind them

// The parity of the phase in which a stage is filled for its `turn`.
__device__ inline uint32_t parity_of(uint32_t turn) {
  return turn / stages % 2;
}

// Called by one thread: arrives at `filled`, and lets the copy engine load stage i of the rows and
// tokens.
template <class Shape>
__device__ void copy_stage(const launch& l, uint8_t* to, uint32_t i, uint32_t r, uint64_t first,
                           phase_barrier* filled) {
  arrive_expecting(filled, Shape::stage);
  for (uint32_t box = 0; box < 2; ++box)
    copy_box(to + box * Shape::box, l.boxes[0], i * stage_elements + 128 * box,
             static_cast<uint32_t>(first), filled);
  copy_box(to + Shape::codes, l.boxes[1], i * stage_elements / 4, r, filled);
}

// Codes of one block, which is half a stage, of this lane's two rows in each tile. The copy
// engine has rotated the four pieces of 16 bytes of a row by the row's number.
template <class Shape>
struct stage_codes {
  code_words of[Shape::tiles];

  // Of this lane; the same for all stages.
  __device__ static uint32_t place() {
    const uint32_t in_group = warp_of_group() % 4 * 16 + lane() / 4;
    const uint32_t row = warp_of_group() / 4 * Shape::rows_of_group + in_group;
    return row * 64 + row / 2 % 4 * 16 + lane() % 4 * 4;  // rows 8 further are turned alike
  }
  __device__ void read(const uint8_t* codes, uint32_t place, uint32_t block) {
    for (uint32_t half = 0; half < 2; ++half) {
      const uint8_t* const at = codes + (place ^ (2 * block + half) * 16);
      for (uint32_t t = 0; t < Shape::tiles; ++t) {
        of[t].upper[half] = *reinterpret_cast<const uint32_t*>(at + t * (64 * 64));
        of[t].lower[half] = *reinterpret_cast<const uint32_t*>(at + t * (64 * 64) + 8 * 64);
      }
    }
  }
};

// One arrival of the warp, once all of its lanes are here.
__device__ inline void arrive_together(phase_barrier* b) {
  meet_lanes();
  if (lane() == 0) arrive(b);
}

// Calls take(first row, first token, number of the tile) for the group's tiles.
template <class Shape, class Take>
__device__ void each_tile(const ternary_product& of, Take take) {
  uint32_t tile = 0;
  each_group((uint64_t{of.p.n_rows} + Shape::rows - 1) / Shape::rows, [&](uint32_t unit) {
    for (uint64_t first = uint64_t{blockIdx.y} * Shape::tokens; first < of.tokens;
         first += uint64_t{gridDim.y} * Shape::tokens)
      take(unit * Shape::rows, first, tile++);
  });
}
// Stages of a row.
__device__ inline uint32_t stages_of_row(const ternary_product& of) {
  return static_cast<uint32_t>((of.stride * 4 + stage_elements - 1) / stage_elements);
}

}  // namespace bitnet::kernels

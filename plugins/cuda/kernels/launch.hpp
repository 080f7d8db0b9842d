#pragma once
// What every kernel gets, whatever it computes: one value.

#include <cstdint>

namespace bitnet::cuda {

// Lanes of a warp. Other makers' devices have 64.
#ifndef BITNET_WARP_LANES
#define BITNET_WARP_LANES 32
#endif
inline constexpr uint32_t warp_lanes = BITNET_WARP_LANES;
inline constexpr uint32_t group_threads = 128;  // of a work group, of nearly every kernel

// A matrix in memory of the device and how boxes of it lie in memory of a group: what the driver
// makes (CUtensorMap), for the engine that copies them.
struct alignas(128) tensor_map {
  uint64_t words[16];
};

struct launch {
  uint64_t memory[8];     // device addresses of the bindings, in the order of kernels.hpp
  uint32_t constants[5];  // those of the kernel's specification
  uint32_t params[32];    // words of its parameter struct
  uint32_t most_looks;    // at a phase of a barrier before a thread gives up; 0: it never does
  // Of kernels whose tile has boxes: of the activations, and of the matrix.
  tensor_map boxes[2];
};

// Several launches of one kernel as one: those of their groups stand behind each other in x.
inline constexpr uint32_t most_joined = 3;
struct joined_launch {
  launch of[most_joined];
  uint32_t ends[most_joined];  // groups of each and those before it; the last counts for the rest
};

}  // namespace bitnet::cuda

#pragma once
// What every kernel gets, whatever it computes and whose device it runs on. A maker's launch.hpp
// makes `launch` and `joined_launch` of it.

#include <cstdint>

namespace bitnet::kernels {

// Lanes of a warp. Some devices have 64, and some of their makers' documents call it a wave.
#ifndef BITNET_WARP_LANES
#define BITNET_WARP_LANES 32
#endif
inline constexpr uint32_t warp_lanes = BITNET_WARP_LANES;
inline constexpr uint32_t group_threads = 128;  // of a work group, of nearly every kernel

inline constexpr uint32_t most_bindings = 16;  // of a kernel
struct plain_launch {
  // Device addresses of the bindings, in the order of kernels.hpp.
  uint64_t memory[most_bindings];
  uint32_t constants[5];  // those of the kernel's specification
  uint32_t params[32];    // words of its parameter struct
};

// Several launches of one kernel as one: those of their groups stand behind each other in x.
inline constexpr uint32_t most_joined = 3;
template <class Launch>
struct joined_launches {
  Launch of[most_joined];
  uint32_t ends[most_joined];  // groups of each and those before it; the last counts for the rest
};

}  // namespace bitnet::kernels

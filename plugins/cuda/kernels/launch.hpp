#pragma once
// What every kernel gets, whatever it computes: one value.

#include <cstdint>

namespace bitnet::cuda {

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
  // Of kernels whose tile has boxes: of the activations, and of the matrix.
  tensor_map boxes[2];
};

}  // namespace bitnet::cuda

#pragma once
// The one argument of every kernel.

#include <cstdint>

#include "gpu-common/simt/plain_launch.hpp"

namespace bitnet::kernels {

// A matrix in device memory, and the layout of its boxes in shared memory: a CUtensorMap, which the
// driver creates for the copy engine.
struct alignas(128) tensor_map {
  uint64_t words[16];
};

struct launch : plain_launch {
  uint32_t most_looks;  // at a phase of a barrier before a thread gives up; 0: it never does
  // Of kernels whose tile has boxes: of the activations, and of the matrix.
  tensor_map boxes[2];
};
using joined_launch = joined_launches<launch>;

}  // namespace bitnet::kernels

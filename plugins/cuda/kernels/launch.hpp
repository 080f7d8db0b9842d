#pragma once
// What every kernel gets, whatever it computes: one value.

#include <cstdint>

namespace bitnet::cuda {

inline constexpr uint32_t group_threads = 128;  // of a work group, of every kernel

struct launch {
  uint64_t memory[8];     // device addresses of the bindings, in the order of kernels.hpp
  uint32_t constants[5];  // those of the kernel's specification
  uint32_t params[32];    // words of its parameter struct
};

}  // namespace bitnet::cuda

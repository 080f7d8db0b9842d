#pragma once
// Makes the WGSL text of a kernel's specification.

#include <array>
#include <string>
#include <vector>

#include "gpu-common/kernels.hpp"

namespace bitnet::webgpu {

// Optional parts of WGSL that a device supports.
struct dialect {
  bool packed_dot = false;  // dot4I8Packed
  bool subgroups = false;   // subgroupMax and the like
  bool enables = true;      // it needs "enable subgroups", as in the standard; naga rejects it
};

// For each binding, the lowest binding with the same memory. WebGPU rejects memory that is bound
// twice and may be written, so the text uses one name for it.
using shared_bindings = std::array<uint8_t, gpu::max_kernel_bindings>;
inline constexpr shared_bindings none_shared = {0, 1, 2, 3, 4, 5, 6, 7};

// Tests whether an adapter computes (known_answer.cpp); no kernel of the contract.
inline constexpr auto known_answer = gpu::kernel_id::count;

// Empty if the plugin has no such kernel.
std::string text_of(const gpu::kernel_spec& spec, const dialect& device,
                    const shared_bindings& same);
const char* name_of(gpu::kernel_id id);
uint32_t bindings_of(gpu::kernel_id id);

// The parameters' binding, after those of memory.
inline constexpr uint32_t parameter_binding = gpu::max_kernel_bindings;

}  // namespace bitnet::webgpu

#pragma once
// From a kernel's specification to its text in WGSL.

#include <array>
#include <string>
#include <vector>

#include "gpu-common/kernels.hpp"

namespace bitnet::webgpu {

// What a device's language has beyond what every one has.
struct dialect {
  bool packed_dot = false;  // dot4I8Packed
  bool subgroups = false;   // subgroupMax and the like
  bool enables = true;      // it wants "enable subgroups", as the standard does; naga refuses it
};

// Which binding another one is the same memory as: its own number, or a smaller one. Memory that is
// bound twice and may be written is an error in WebGPU, so that the text knows it by one name.
using shared_bindings = std::array<uint8_t, gpu::max_kernel_bindings>;
inline constexpr shared_bindings none_shared = {0, 1, 2, 3, 4, 5, 6, 7};

// The kernel by which an adapter shows that it computes (known_answer.cpp); none of the contract's.
inline constexpr auto known_answer = gpu::kernel_id::count;

// Empty for what is no kernel of this plugin.
std::string text_of(const gpu::kernel_spec& spec, const dialect& device,
                    const shared_bindings& same);
const char* name_of(gpu::kernel_id id);
uint32_t bindings_of(gpu::kernel_id id);

// The number of the binding of the parameters, behind those of memory.
inline constexpr uint32_t parameter_binding = gpu::max_kernel_bindings;

}  // namespace bitnet::webgpu

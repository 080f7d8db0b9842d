#pragma once
// The kernels as SPIR-V, compiled from kernels/ when the plugin is built.

#include <cstdint>
#include <span>
#include <vector>

#include "forms.hpp"
#include "gpu-common/kernels.hpp"

namespace bitnet::vulkan {

// One form of a kernel, and the abilities that it needs.
struct shader {
  gpu::kernel_id id;
  bool subgroups, dot_product;
  std::span<const uint32_t> code;
};

// Every form of every kernel. Defined in code.cpp, which forms.cmake writes.
const std::vector<shader>& shaders();

// The form that uses most of the device's abilities; nullptr for an unknown kernel.
const shader* shader_of(gpu::kernel_id id, const forms& device);

}  // namespace bitnet::vulkan

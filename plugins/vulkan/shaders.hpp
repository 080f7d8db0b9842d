#pragma once
// The kernels as SPIR-V, compiled from kernels/ when the plugin is built.

#include <cstdint>
#include <span>

#include "gpu-common/kernels.hpp"

namespace bitnet::vulkan {

std::span<const uint32_t> shader_of(gpu::kernel_id id) noexcept;

}  // namespace bitnet::vulkan

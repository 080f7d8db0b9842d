#include "shaders.hpp"

namespace bitnet::vulkan {
// Defined in code.cpp, which CMakeLists.txt writes.
namespace code {
extern const std::span<const uint32_t> embed_gather;
extern const std::span<const uint32_t> rms_norm;
extern const std::span<const uint32_t> act_quant;
extern const std::span<const uint32_t> linear_ternary;
extern const std::span<const uint32_t> linear_dense;
extern const std::span<const uint32_t> rope;
extern const std::span<const uint32_t> kv_write;
extern const std::span<const uint32_t> attn_paged;
extern const std::span<const uint32_t> elementwise;
extern const std::span<const uint32_t> gather_rows;
extern const std::span<const uint32_t> norm_quant;
extern const std::span<const uint32_t> glu_quant;
}  // namespace code

std::span<const uint32_t> shader_of(gpu::kernel_id id) noexcept {
  switch (id) {
    case gpu::kernel_id::embed_gather:
      return code::embed_gather;
    case gpu::kernel_id::rms_norm:
      return code::rms_norm;
    case gpu::kernel_id::act_quant:
      return code::act_quant;
    case gpu::kernel_id::linear_ternary:
      return code::linear_ternary;
    case gpu::kernel_id::linear_dense:
      return code::linear_dense;
    case gpu::kernel_id::rope:
      return code::rope;
    case gpu::kernel_id::kv_write:
      return code::kv_write;
    case gpu::kernel_id::attn_paged:
      return code::attn_paged;
    case gpu::kernel_id::elementwise:
      return code::elementwise;
    case gpu::kernel_id::gather_rows:
      return code::gather_rows;
    case gpu::kernel_id::norm_quant:
      return code::norm_quant;
    case gpu::kernel_id::glu_quant:
      return code::glu_quant;
    case gpu::kernel_id::count:
      break;
  }
  return {};
}

}  // namespace bitnet::vulkan

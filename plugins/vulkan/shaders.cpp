#include "shaders.hpp"

namespace bitnet::vulkan {
namespace {

constexpr uint32_t embed_gather[] = {
#include "embed_gather.spv.inc"
};
constexpr uint32_t rms_norm[] = {
#include "rms_norm.spv.inc"
};
constexpr uint32_t act_quant[] = {
#include "act_quant.spv.inc"
};
constexpr uint32_t linear_ternary[] = {
#include "linear_ternary.spv.inc"
};
constexpr uint32_t linear_dense[] = {
#include "linear_dense.spv.inc"
};
constexpr uint32_t rope[] = {
#include "rope.spv.inc"
};
constexpr uint32_t kv_write[] = {
#include "kv_write.spv.inc"
};
constexpr uint32_t attn_paged[] = {
#include "attn_paged.spv.inc"
};
constexpr uint32_t elementwise[] = {
#include "elementwise.spv.inc"
};
constexpr uint32_t gather_rows[] = {
#include "gather_rows.spv.inc"
};
constexpr uint32_t norm_quant[] = {
#include "norm_quant.spv.inc"
};
constexpr uint32_t glu_quant[] = {
#include "glu_quant.spv.inc"
};

}  // namespace

std::span<const uint32_t> shader_of(gpu::kernel_id id) noexcept {
  switch (id) {
    case gpu::kernel_id::embed_gather:
      return embed_gather;
    case gpu::kernel_id::rms_norm:
      return rms_norm;
    case gpu::kernel_id::act_quant:
      return act_quant;
    case gpu::kernel_id::linear_ternary:
      return linear_ternary;
    case gpu::kernel_id::linear_dense:
      return linear_dense;
    case gpu::kernel_id::rope:
      return rope;
    case gpu::kernel_id::kv_write:
      return kv_write;
    case gpu::kernel_id::attn_paged:
      return attn_paged;
    case gpu::kernel_id::elementwise:
      return elementwise;
    case gpu::kernel_id::gather_rows:
      return gather_rows;
    case gpu::kernel_id::norm_quant:
      return norm_quant;
    case gpu::kernel_id::glu_quant:
      return glu_quant;
    case gpu::kernel_id::count:
      break;
  }
  return {};
}

}  // namespace bitnet::vulkan

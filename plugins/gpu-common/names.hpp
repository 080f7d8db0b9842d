#pragma once
// The op, format and name of each kernel in kernels.hpp. A name is "linear_dense.q8_0.<api>".

#include <string>
#include <string_view>
#include <vector>

#include "bitnet/abi/info.h"

namespace bitnet::gpu {

struct capabilities;

struct named_kernel {
  uint32_t op, format, level, exact;
  std::string id;
  bool fused = false;  // only fused kernels run `op`
  uint32_t precision = BITNET_PRECISION_F32;
};

// "rms_norm.vulkan"; `format` is 0 if the op has one kernel for all formats.
std::string kernel_name(uint32_t op, uint32_t format, std::string_view api);
// Names of kernels that run several ops at once.
std::string norm_quant_name(std::string_view api);
std::string norm_quant_groups_name(std::string_view api);
std::string glu_quant_name(uint32_t activation, bool norm, std::string_view api);
std::string glu_quant_groups_name(uint32_t activation, std::string_view api);
std::string rope_kv_name(std::string_view api);
// Attention of a context that is cut into parts.
std::string attention_parts_name(std::string_view api);
// `norms`: with norms of the heads of queries and keys.
std::string attn_token_name(bool norms, std::string_view api);
std::string linear_add_name(uint32_t product, std::string_view api);
std::string bit_linear_name(bool norm, bool add, std::string_view api);

// Names the two-stage head for a matrix of `format`; "" if there is none.
std::string top_head_name(uint32_t format, std::string_view api);

// The format to which activations of such a matrix are rounded: BITNET_PRECISION_*, F32 for none.
uint32_t rounded_precision(uint32_t format) noexcept;
// Names the product with rounded activations; "" if there is none.
std::string rounded_name(uint32_t format, std::string_view api);
// Names attention with rounded factors.
std::string rounded_attention_name(std::string_view api);

// All kernels of plugin `api` on such a device: primitives, then fused kernels, then rounding ones.
std::vector<named_kernel> all_kernels(std::string_view api, const capabilities& can);

}  // namespace bitnet::gpu

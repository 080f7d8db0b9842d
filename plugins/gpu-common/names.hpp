#pragma once
// Which op and format a kernel of kernels.hpp is for, and what it is called:
// "linear_dense.q8_0.<api>".

#include <string>
#include <string_view>
#include <vector>

#include "bitnet/abi/info.h"

namespace bitnet::gpu {

struct facts;

struct named_kernel {
  uint32_t op, format, level, exact;
  std::string id;
  bool fused = false;  // it runs `op` with others only
  uint32_t precision = BITNET_PRECISION_F32;
};

// "rms_norm.vulkan"; `format` is 0 where the op reads no weight that may have several.
std::string kernel_name(uint32_t op, uint32_t format, std::string_view api);
// Those that run several ops at once.
std::string norm_quant_name(std::string_view api);
std::string glu_quant_name(uint32_t activation, bool norm, std::string_view api);
std::string rope_kv_name(std::string_view api);
std::string linear_add_name(uint32_t product, std::string_view api);
std::string bit_linear_name(bool norm, bool add, std::string_view api);

// Of the two-stage head, by the format of the matrix; "" where there is none.
std::string top_head_name(uint32_t format, std::string_view api);

// What activations of a matrix of this format are rounded to: BITNET_PRECISION_*, F32 for none.
uint32_t rounded_precision(uint32_t format) noexcept;
// Of that product; "" where there is none.
std::string rounded_name(uint32_t format, std::string_view api);

// Of a plugin `api` on such a device: the primitives, then the fused ones, then those that round.
std::vector<named_kernel> all_kernels(std::string_view api, const facts& about);

}  // namespace bitnet::gpu

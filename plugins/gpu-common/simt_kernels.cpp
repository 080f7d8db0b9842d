#include "simt_kernels.hpp"

#include <algorithm>

#include "bitnet/abi/ops.h"
#include "bitnet/abi/tensor.h"
#include "simt/plain_launch.hpp"

namespace bitnet::gpu {

const char* part_of(kernel_id id) noexcept {
  switch (id) {
    case kernel_id::embed_gather:
    case kernel_id::linear_dense:
      return "dense";
    case kernel_id::rms_norm:
    case kernel_id::act_quant:
    case kernel_id::act_quant_groups:
    case kernel_id::hadamard:
    case kernel_id::norm_quant:
    case kernel_id::glu_quant:
    case kernel_id::norm_quant_groups:
    case kernel_id::glu_quant_groups:
      return "rows";
    case kernel_id::linear_ternary:
    case kernel_id::bit_linear:
      return "ternary";
    case kernel_id::rope:
    case kernel_id::elementwise:
    case kernel_id::gather_rows:
    case kernel_id::columns:
      return "elements";
    case kernel_id::kv_write:
    case kernel_id::attn_tiles:
    case kernel_id::attn_merge:
      return "attention";
    case kernel_id::attn_token:
      return "attention_token";
    case kernel_id::short_conv:
    case kernel_id::delta_gates:
    case kernel_id::delta_rule:
      return "states";
    case kernel_id::head_copy:
    case kernel_id::head_state:
    case kernel_id::head_approximate:
    case kernel_id::head_count:
    case kernel_id::head_exact:
      return "head";
    case kernel_id::attn_paged:
    case kernel_id::round_rows:
    case kernel_id::linear_dense_rounded:
    case kernel_id::attn_rounded:
    case kernel_id::count:
      break;
  }
  return nullptr;
}

const char* format_name(uint32_t format) noexcept {
  switch (format) {
    case BITNET_FORMAT_F32:
      return "f32";
    case BITNET_FORMAT_F16:
      return "f16";
    case BITNET_FORMAT_BF16:
      return "bf16";
    case BITNET_FORMAT_Q8_0:
      return "q8_0";
    case BITNET_FORMAT_Q4_0:
      return "q4_0";
    case BITNET_FORMAT_Q4_K:
      return "q4_k";
    case BITNET_FORMAT_Q6_K:
      return "q6_k";
    default:
      return nullptr;
  }
}
const char* dtype_name(uint32_t dtype) noexcept {
  switch (dtype) {
    case BITNET_DTYPE_F32:
      return "f32";
    case BITNET_DTYPE_F16:
      return "f16";
    case BITNET_DTYPE_Q8_0:
      return "q8_0";
    case BITNET_DTYPE_Q4_0:
      return "q4_0";
    default:
      return nullptr;
  }
}

bool has_factors(const kernel_spec& linear) noexcept {
  return linear.constants[1] == 1 || linear.constants[4] != 0;
}

uint32_t shorter_group(const kernel_spec& linear, const linear_ternary_params& p) noexcept {
  const uint32_t own = p.scale_group == 0 ? p.k : p.scale_group, given = linear.constants[4];
  return given == 0 ? own : std::min(own, given);
}

bool add_selected(const kernel_spec& spec, std::string& name) {
  const uint32_t* c = spec.constants;
  switch (spec.id) {
    case kernel_id::linear_ternary:
      name += has_factors(spec) ? "_factored" : "_1";
      return true;
    case kernel_id::linear_dense: {
      const char* format = format_name(c[3]);
      if (!format) return false;
      name += std::string("_") + format + (c[2] <= 1 ? "_1" : "_4");
      return true;
    }
    case kernel_id::head_copy:
    case kernel_id::head_exact: {
      const char* format = format_name(c[3]);
      if (!format) return false;
      name += std::string("_") + format;
      return true;
    }
    case kernel_id::head_approximate:
      name += c[2] <= 1 ? "_1" : "_4";
      return true;
    default:
      return true;
  }
}

bool joins(std::string_view function) noexcept {
  return function == "linear_ternary_1" || function == "bit_linear";
}

void set_simt_facts(facts& about) noexcept {
  capabilities& can = about.capabilities;
  can.binding_alignment = 16;  // bytes that a thread reads at once
  can.group_size = can.max_group_size = kernels::group_threads;
  can.max_groups = 65535;
  can.max_bindings = most_kernel_bindings;
  // Elements of an attention head that a thread keeps. Heads have at most 11 * 128 = 1408 elements,
  // so that four rows of queries and of sums fit into shared memory.
  can.max_kept = 11;
  can.has_top_head = true;
  can.fuses_groups = true;
  about.quirks.quantises_by_words = true;
}

uint64_t shared_words_of(const kernel_spec& spec) noexcept {
  const uint32_t* c = spec.constants;
  switch (spec.id) {
    case kernel_id::hadamard:
      return c[1];
    case kernel_id::delta_rule:
      return uint64_t{2} * c[1];
    case kernel_id::bit_linear:
      return c[4];
    case kernel_id::head_approximate:
      return uint64_t{head_bins} * (c[2] <= 1 ? 1 : 4);
    case kernel_id::attn_tiles:
    case kernel_id::attn_token:
      return attn_tile_words(c[3], c[4]);
    case kernel_id::attn_merge:
      return uint64_t{4} * kernels::group_threads;
    default:
      return 0;
  }
}

}  // namespace bitnet::gpu

#include "names.hpp"

#include <algorithm>

#include "bitnet/sdk/compute/graph.hpp"
#include "bitnet/sdk/formats.hpp"
#include "driver.hpp"

namespace bitnet::gpu {
namespace {

std::string op_name(uint32_t op) {
  std::string name = sdk::find_op(op)->name;
  for (char& c : name)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return name;
}

// Later ops have no kernels yet: graph_query reports level NONE.
constexpr uint32_t newest_primitive = BITNET_OP_DELTA_RULE;

constexpr uint32_t ternary_products[] = {BITNET_OP_LINEAR_TERNARY,
                                         BITNET_OP_LINEAR_TERNARY_GROUPED};

// Formats of heads with a second stage. Other formats are about as small as the copy.
constexpr uint32_t top_formats[] = {BITNET_FORMAT_F32, BITNET_FORMAT_F16, BITNET_FORMAT_BF16};

bool is_ternary_product(uint32_t op) noexcept {
  return std::ranges::find(ternary_products, op) != std::end(ternary_products);
}

bool has_formats(uint32_t op) noexcept {
  return op == BITNET_OP_EMBED_GATHER || op == BITNET_OP_LINEAR_DENSE || is_ternary_product(op);
}

bool reads(uint32_t op, uint32_t format) noexcept {
  const bool ternary = format == BITNET_FORMAT_TERNARY2;
  return op == BITNET_OP_EMBED_GATHER || ternary == is_ternary_product(op);
}

bool is_exact(uint32_t op) noexcept {
  return is_ternary_product(op) || op == BITNET_OP_ACT_QUANT_I8 ||
         op == BITNET_OP_ACT_QUANT_I8_GROUPED || op == BITNET_OP_GATHER_ROWS ||
         op == BITNET_OP_COLUMNS;
}

std::string ending(std::string_view api) {
  return "." + std::string(api);
}

}  // namespace

std::string kernel_name(uint32_t op, uint32_t format, std::string_view api) {
  std::string name = op_name(op);
  if (has_formats(op)) name += std::string(".") + sdk::find_format(format)->name;
  return name + ending(api);
}

std::string norm_quant_name(std::string_view api) {
  return "rms_norm_act_quant_i8" + ending(api);
}

std::string norm_quant_groups_name(std::string_view api) {
  return "rms_norm_act_quant_i8_grouped" + ending(api);
}

std::string glu_quant_name(uint32_t activation, bool norm, std::string_view api) {
  return op_name(activation) + "_mul_" + (norm ? "rms_norm_" : "") + "act_quant_i8" + ending(api);
}

std::string glu_quant_groups_name(uint32_t activation, std::string_view api) {
  return op_name(activation) + "_mul_act_quant_i8_grouped" + ending(api);
}

std::string rope_kv_name(std::string_view api) {
  return "rope_kv_write" + ending(api);
}

std::string attention_parts_name(std::string_view api) {
  return "attn_paged_parts" + ending(api);
}

std::string attn_token_name(bool norms, std::string_view api) {
  return std::string(norms ? "rms_norm_heads_" : "") + "rope_kv_write_attn_paged" + ending(api);
}

std::string linear_add_name(uint32_t product, std::string_view api) {
  return op_name(product) + "_add.ternary2" + ending(api);
}

std::string bit_linear_name(bool norm, bool add, std::string_view api) {
  return std::string(norm ? "rms_norm_" : "") + "bit_linear" + (add ? "_add" : "") + ".ternary2" +
         ending(api);
}

std::string top_head_name(uint32_t format, std::string_view api) {
  if (std::ranges::find(top_formats, format) == std::end(top_formats)) return "";
  return std::string("linear_dense_top.i8+") + sdk::find_format(format)->name + ending(api);
}

uint32_t rounded_precision(uint32_t format) noexcept {
  return format == BITNET_FORMAT_F16    ? BITNET_PRECISION_F16
         : format == BITNET_FORMAT_BF16 ? BITNET_PRECISION_BF16
                                        : BITNET_PRECISION_F32;
}

std::string rounded_name(uint32_t format, std::string_view api) {
  if (rounded_precision(format) == BITNET_PRECISION_F32) return "";
  const std::string name = sdk::find_format(format)->name;
  return "linear_dense_" + name + "." + name + ending(api);
}

std::string rounded_attention_name(std::string_view api) {
  return "attn_paged_f16" + ending(api);
}

std::vector<named_kernel> all_kernels(std::string_view api, const capabilities& can) {
  constexpr uint32_t steady = BITNET_EXACT_BATCH | BITNET_EXACT_RUN;
  constexpr uint32_t exact = steady | BITNET_EXACT_INTEGER;
  std::vector<named_kernel> out;
#define BITNET_GPU_ID(NAME, ...) BITNET_OP_##NAME,
  constexpr uint32_t ops[] = {BITNET_OP_LIST(BITNET_GPU_ID)};
#undef BITNET_GPU_ID
  for (const uint32_t op : ops) {
    if (op > newest_primitive) continue;
    const auto add = [&](uint32_t format) {
      out.push_back({op, format, BITNET_LEVEL_OPTIMISED, is_exact(op) ? exact : steady,
                     kernel_name(op, format, api)});
    };
    if (!has_formats(op)) {
      add(BITNET_FORMAT_NONE);
      continue;
    }
    for (const sdk::format& f : sdk::formats)
      if (reads(op, f.id)) add(f.id);
  }
  const auto fused = [&](uint32_t op, uint32_t format, uint32_t exactness, const std::string& id) {
    out.push_back({op, format, BITNET_LEVEL_OPTIMISED, exactness, id, true});
  };
  fused(BITNET_OP_ACT_QUANT_I8, BITNET_FORMAT_NONE, steady, norm_quant_name(api));
  for (const uint32_t activation : {BITNET_OP_RELU2, BITNET_OP_SILU, BITNET_OP_GELU})
    for (const bool norm : {true, false})
      fused(BITNET_OP_ACT_QUANT_I8, BITNET_FORMAT_NONE, steady,
            glu_quant_name(activation, norm, api));
  if (can.fuses_groups) {
    constexpr uint32_t grouped = BITNET_OP_ACT_QUANT_I8_GROUPED;
    fused(grouped, BITNET_FORMAT_NONE, steady, norm_quant_groups_name(api));
    for (const uint32_t activation : {BITNET_OP_RELU2, BITNET_OP_SILU, BITNET_OP_GELU})
      fused(grouped, BITNET_FORMAT_NONE, steady, glu_quant_groups_name(activation, api));
  }
  fused(BITNET_OP_KV_WRITE, BITNET_FORMAT_NONE, steady, rope_kv_name(api));
  if (can.attention_rows != 0)
    fused(BITNET_OP_ATTN_PAGED, BITNET_FORMAT_NONE, steady, attention_parts_name(api));
  if (can.attention_of_token)
    for (const bool norms : {false, true})
      fused(BITNET_OP_ATTN_PAGED, BITNET_FORMAT_NONE, steady, attn_token_name(norms, api));
  for (const uint32_t product : ternary_products)
    fused(product, BITNET_FORMAT_TERNARY2, exact, linear_add_name(product, api));
  for (const bool norm : {true, false})
    for (const bool added : {true, false})
      fused(BITNET_OP_BIT_LINEAR, BITNET_FORMAT_TERNARY2, norm ? steady : exact,
            bit_linear_name(norm, added, api));
  for (const uint32_t format : top_formats)
    if (can.has_top_head) fused(BITNET_OP_LINEAR_DENSE, format, steady, top_head_name(format, api));
  for (const uint32_t format : {BITNET_FORMAT_F16, BITNET_FORMAT_BF16})
    if (const uint32_t rounded = rounded_precision(format); (can.precisions >> rounded & 1) != 0)
      out.push_back({BITNET_OP_LINEAR_DENSE, format, BITNET_LEVEL_OPTIMISED, BITNET_EXACT_RUN,
                     rounded_name(format, api), true, rounded});
  if (can.rounded_heads != 0)
    out.push_back({BITNET_OP_ATTN_PAGED, BITNET_FORMAT_NONE, BITNET_LEVEL_OPTIMISED,
                   BITNET_EXACT_RUN, rounded_attention_name(api), true, BITNET_PRECISION_F16});
  return out;
}

}  // namespace bitnet::gpu

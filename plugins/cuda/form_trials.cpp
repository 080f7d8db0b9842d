#include "form_trials.hpp"

#include <algorithm>
#include <utility>

#include "bitnet/abi/tensor.h"
#include "kernel_table.hpp"

namespace bitnet::cuda {

using gpu::attention_trial, gpu::bit_linear_trial, gpu::delta_trial, gpu::product_trial;
using gpu::round_rows_trial, gpu::rounded_attention_trial, gpu::rounded_trial, gpu::row_trial;

namespace {

// Products with rounded activations, which no other kernel computes: rows of the matrix and tokens
// that end within a tile.
void add_rounded(uint32_t precisions, std::vector<gpu::form_trial>& out) {
  constexpr uint32_t odd = 131;  // elements of a row, which ends in an odd word
  constexpr uint32_t f16 = BITNET_FORMAT_F16, bf16 = BITNET_FORMAT_BF16;
  if ((precisions >> BITNET_PRECISION_F16 & 1) != 0) {
    out.push_back({{"round_rows_f16"}, round_rows_trial(f16, odd)});
    out.push_back({{"linear_dense_rounded_f16_few"}, rounded_trial(f16, 192, 70, 13)});
    out.push_back({{"linear_dense_rounded_f16_many"}, rounded_trial(f16, 192, 130, 70)});
  }
  if ((precisions >> BITNET_PRECISION_BF16 & 1) != 0) {
    out.push_back({{"round_rows_bf16"}, round_rows_trial(bf16, odd)});
    out.push_back({{"linear_dense_rounded_bf16_few"}, rounded_trial(bf16, 192, 70, 13)});
    out.push_back({{"linear_dense_rounded_bf16_many"}, rounded_trial(bf16, 192, 130, 70)});
  }
}

}  // namespace

std::vector<gpu::form_trial> form_trials(const gpu::facts& about) {
  std::vector<gpu::form_trial> out;
  out.push_back({{"linear_ternary_few", "linear_ternary_many"}, product_trial(384, 70, 40, 0, 0)});
  // Three turns of a group's four warps, the last of one block for one of them.
  constexpr uint32_t three_turns = 2 * 1024 + 100;
  out.push_back({{"linear_ternary_tiles_one"}, product_trial(three_turns, 20, 1, 0, 0)});
  out.push_back({{"bit_linear_tiles_one"}, bit_linear_trial(three_turns, 70)});
  // More than two tiles of rows for each of two groups of a multiprocessor. The row is one whose
  // norm shows the order of its sum, as those of 384 elements do not.
  const uint32_t groups = 2 * std::max(about.compute_units, 1u);
  out.push_back(
      {{"bit_linear_tiles_one"}, bit_linear_trial(512, 2 * groups * one_quantised.rows + 6)});
  // Rows of both warp groups of the wide form and nearly all of its columns, two tiles of the
  // narrow one each way, and more stages than there are at once; all end within a tile.
  out.push_back({{"linear_ternary_narrow", "linear_ternary_wide"},
                 product_trial((stages + 1) * stage_elements, 140, 126, 0, 0)});
  // Of each length of groups that has code of its own, and of longer groups within and past a
  // block.
  for (const auto& [own, given] : {std::pair{128u, 32u}, {32u, 128u}, {64u, 0u}, {0u, 128u}})
    out.push_back({{"linear_ternary_factored_few", "linear_ternary_factored_many",
                    "linear_ternary_factored_one"},
                   product_trial(384, 24, 20, own, given)});
  // By warp groups, of each kind of groups that has code of its own: rows of both warp groups; more
  // stages than there are at once, the last one a half; nearly all columns.
  out.push_back({{"linear_ternary_factored_wide"},
                 product_trial(stages * stage_elements + 128, 70, 66, 128, 32)});
  for (const auto& [own, given] : {std::pair{128u, 64u}, {64u, 0u}})
    out.push_back({{"linear_ternary_factored_wide"}, product_trial(384, 70, 126, own, given)});
  // More blocks than a group of threads takes in a turn.
  for (const auto& [own, given] : {std::pair{128u, 32u}, {256u, 0u}})
    out.push_back({{"linear_ternary_factored_one"}, product_trial(4608, 20, 1, own, given)});
  add_rounded(about.capabilities.precisions, out);
  constexpr uint32_t uneven = 2 * 4 * group_threads + 3;  // elements, over three turns
  out.push_back({{"rms_norm_one"}, row_trial(gpu::kernel_id::rms_norm, uneven, 2)});
  out.push_back({{"act_quant_one"}, row_trial(gpu::kernel_id::act_quant, uneven, 2)});
  out.push_back({{"norm_quant_one"}, row_trial(gpu::kernel_id::norm_quant, uneven, 2)});
  // Groups of one, two and four warps; the third turn ends within it.
  for (const uint32_t group : {32u, 64u, 128u})
    out.push_back({{"norm_quant_groups_one"},
                   row_trial(gpu::kernel_id::norm_quant_groups, 11 * 128, 2, group)});
  out.push_back({{"glu_quant_one"}, row_trial(gpu::kernel_id::glu_quant, uneven, 2)});
  out.push_back(
      {{"glu_quant_one_long"}, row_trial(gpu::kernel_id::glu_quant, one_row_most + uneven, 2)});
  out.push_back({{"head_state_one"}, row_trial(gpu::kernel_id::head_state, uneven, 2)});
  out.push_back({{"delta_rule_64"}, delta_trial(64)});
  out.push_back({{"delta_rule_128"}, delta_trial(128)});
  out.push_back({{"attn_prompt_64"}, attention_trial(64, most_attention_rows)});
  out.push_back({{"attn_prompt_128"}, attention_trial(128, most_attention_rows)});
  out.push_back({{"attn_prompt_256"}, attention_trial(256, most_attention_rows)});
  out.push_back({{"attn_prompt_f16_64"}, rounded_attention_trial(64, most_attention_rows)});
  out.push_back({{"attn_prompt_f16_128"}, rounded_attention_trial(128, most_attention_rows)});
  out.push_back({{"attn_prompt_f16_256"}, rounded_attention_trial(256, most_attention_rows)});
  return out;
}

}  // namespace bitnet::cuda

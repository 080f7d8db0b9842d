// SPDX-License-Identifier: Apache-2.0
#include "kernels.hpp"

#include "around.hpp"
#include "linear_ternary.hpp"
#include "rest.hpp"

namespace sketch {

std::vector<bitnet::sdk::primitive> kernels() {
  constexpr uint32_t any = BITNET_FORMAT_NONE;
  constexpr uint32_t level = BITNET_LEVEL_REFERENCE;
  constexpr uint32_t same = BITNET_EXACT_BATCH | BITNET_EXACT_RUN;
  constexpr uint32_t exact = same | BITNET_EXACT_INTEGER;
  return {
      {BITNET_OP_EMBED_GATHER, any, level, same, "embed_gather.plain", embed_gather},
      {BITNET_OP_RMS_NORM, any, level, same, "rms_norm.plain", rms_norm},
      {BITNET_OP_ACT_QUANT_I8, any, level, exact, "act_quant_i8.plain", act_quant_i8},
      {BITNET_OP_LINEAR_TERNARY, BITNET_FORMAT_TERNARY2, level, exact,
       "linear_ternary.ternary2.plain", linear_ternary},
      {BITNET_OP_LINEAR_DENSE, any, level, same, "linear_dense.plain", linear_dense},
      {BITNET_OP_ROPE, any, level, same, "rope.plain", rope},
      {BITNET_OP_KV_WRITE, any, level, same, "kv_write.plain", kv_write},
      {BITNET_OP_ATTN_PAGED, any, level, same, "attn_paged.plain", attn_paged},
      {BITNET_OP_ADD, any, level, same, "add.plain", add},
      {BITNET_OP_MUL, any, level, same, "mul.plain", mul},
      {BITNET_OP_RELU2, any, level, same, "relu2.plain", relu2},
      {BITNET_OP_SILU, any, level, same, "silu.plain", silu},
      {BITNET_OP_GATHER_ROWS, any, level, same, "gather_rows.plain", gather_rows},
  };
}

}  // namespace sketch

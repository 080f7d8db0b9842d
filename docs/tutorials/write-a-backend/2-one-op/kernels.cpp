// SPDX-License-Identifier: Apache-2.0
#include "kernels.hpp"

#include "around.hpp"
#include "linear_ternary.hpp"

namespace sketch {

std::vector<bitnet::sdk::primitive> kernels() {
  constexpr uint32_t level = BITNET_LEVEL_REFERENCE;
  constexpr uint32_t same = BITNET_EXACT_BATCH | BITNET_EXACT_RUN;
  return {
      {BITNET_OP_LINEAR_TERNARY, BITNET_FORMAT_TERNARY2, level, same | BITNET_EXACT_INTEGER,
       "linear_ternary.ternary2.plain", linear_ternary},
      {BITNET_OP_EMBED_GATHER, BITNET_FORMAT_NONE, level, same, "embed_gather.plain", embed_gather},
      {BITNET_OP_ACT_QUANT_I8, BITNET_FORMAT_NONE, level, same | BITNET_EXACT_INTEGER,
       "act_quant_i8.plain", act_quant_i8},
      {BITNET_OP_GATHER_ROWS, BITNET_FORMAT_NONE, level, same, "gather_rows.plain", gather_rows},
  };
}

}  // namespace sketch

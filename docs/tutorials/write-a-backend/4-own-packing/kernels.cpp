// SPDX-License-Identifier: Apache-2.0
#include "kernels.hpp"

#include "base3.hpp"
#include "bitnet/sdk/reference/primitives.hpp"

namespace sketch {

std::vector<bitnet::sdk::primitive> kernels() {
  constexpr uint32_t ternary = BITNET_FORMAT_TERNARY2;
  constexpr uint32_t level = BITNET_LEVEL_OPTIMISED;
  constexpr uint32_t same = BITNET_EXACT_BATCH | BITNET_EXACT_RUN;
  std::vector<bitnet::sdk::primitive> all = {
      {BITNET_OP_LINEAR_TERNARY, ternary, level, same | BITNET_EXACT_INTEGER,
       "linear_ternary.ternary2.base3", linear_ternary_base3, nullptr, base3()},
      {BITNET_OP_EMBED_GATHER, ternary, level, same, "embed_gather.ternary2.base3",
       embed_gather_base3, nullptr, base3()},
  };
  // The rest, and what runs where these two were found wrong; but for products with groups of
  // activations, which would look for the rows that base3 drops.
  for (const bitnet::sdk::primitive& p : bitnet::sdk::reference::primitives())
    if (p.op != BITNET_OP_ACT_QUANT_I8_GROUPED && p.op != BITNET_OP_LINEAR_TERNARY_GROUPED)
      all.push_back(p);
  return all;
}

}  // namespace sketch

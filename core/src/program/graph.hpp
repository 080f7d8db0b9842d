#pragma once
// The forward pass of a model as the flat op list of bitnet/abi/program.h.
//
// Ternary linears become LINEAR_TERNARY behind one ACT_QUANT_I8 per input (q, k and v share theirs,
// gate and up share theirs); dense linears become LINEAR_DENSE on the unquantised input. Where a
// whole pattern of ops.h is there it stands under its composite, so that a backend may fuse it.
//
// Source  docs/reference/models.md#forward-pass

#include <string>
#include <vector>

#include "base/result.hpp"
#include "bitnet/abi/backend.h"
#include "model/model.hpp"

namespace bitnet::program {

struct graph {
  std::vector<bitnet_value> values;
  std::vector<bitnet_op> ops;
  uint32_t logits = 0;

  [[nodiscard]] bitnet_graph view() const;  // borrows
};

// For a context of n_context tokens, on which the rotation of a model may depend. Weight indices in
// the ops are those of model::weights().
graph describe(const model::model& m, uint32_t n_context);

// The name in BITNET_OP_LIST, lower case: "linear_ternary".
std::string op_name(uint32_t op);
std::string format_name(uint32_t format);  // "ternary2"

// Fails with BITNET_UNSUPPORTED, naming op and format, if the device cannot run a primitive of g.
result<void> check_support(const bitnet_backend_v0& table, bitnet_device* device, const graph& g,
                           const model::model& m);
// The same where `formats` says what the weights of each op are (BITNET_FORMAT_*).
result<void> check_support(const bitnet_backend_v0& table, bitnet_device* device, const graph& g,
                           const std::vector<uint32_t>& formats);

}  // namespace bitnet::program

#pragma once
// The forward pass of a model as the flat op list of bitnet/abi/program.h.
//
// Ternary linears become LINEAR_TERNARY behind one ACT_QUANT_I8 per input (q, k and v share theirs,
// gate and up share theirs), or their grouped kin where the model asks for groups; dense linears
// become LINEAR_DENSE on the unquantised input. What a rotated matrix reads goes through HADAMARD
// first, once for all that share it. Where a whole pattern of ops.h is there it stands
// under its composite, so that a backend may fuse it.
//
// Source  docs/reference/models.md#forward-pass

#include "compute/graph.hpp"
#include "model/model.hpp"

namespace bitnet::program {

using compute::graph;

// For a context of n_context tokens, on which the rotation of a model may depend. Weight indices in
// the ops are those of model::weights(). It has a port for the logits and for every fact of a step.
graph describe(const model::model& m, uint32_t n_context);

}  // namespace bitnet::program

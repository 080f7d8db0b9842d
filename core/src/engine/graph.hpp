#pragma once
// The forward pass of a model as the flat op list of bitnet/abi/program.h.
//
// Source  docs/reference/models.md#forward-pass; the ops are put together in
//         model/architectures/.

#include "compute/graph/graph.hpp"
#include "model/architectures/graph_builder.hpp"
#include "model/model.hpp"

namespace bitnet::engine {

// The graph for a context of n_context tokens, on which the rotation of a model may depend. Weight
// indices in the ops are those of model::weights(). It has a port for its output and for every fact
// of a step.
compute::graph graph_of(const model::model& m, uint32_t n_context,
                        model::ending what = model::ending::logits);
// The graph of a section, with ports for the hidden states that cross its borders. Layers of keys
// and states are counted from the section's first one.
compute::graph graph_of(const model::model& m, uint32_t n_context, model::ending what,
                        const model::section& of);

}  // namespace bitnet::engine

#include "program/graph.hpp"

namespace bitnet::program {

graph describe(const model::model& m, uint32_t n_context, ending what) {
  return describe(m, n_context, what, m.shape().whole());
}

graph describe(const model::model& m, uint32_t n_context, ending what, const section& of) {
  const model::described all{.shape = m.shape(),
                             .weights = m.weights(),
                             .layers = m.layers(),
                             .token_embedding = m.token_embedding(),
                             .output_norm = m.output_norm(),
                             .output = m.output(),
                             .embedding_transform = m.embedding_transform(),
                             .everywhere = m.rotation_of(n_context),
                             .in_windows = m.local_rotation()};
  return model::graph_builder(all).build(what, of);
}

}  // namespace bitnet::program

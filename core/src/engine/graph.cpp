#include "engine/graph.hpp"

namespace bitnet::engine {

compute::graph graph_of(const model::model& m, uint32_t n_context, model::ending what) {
  return graph_of(m, n_context, what, m.shape().whole());
}

compute::graph graph_of(const model::model& m, uint32_t n_context, model::ending what,
                        const model::section& of) {
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

}  // namespace bitnet::engine

#include "model/architectures/layer_weights.hpp"

namespace bitnet::model {

std::vector<layer_weight> attention_weights(const hyperparameters& shape) {
  const uint64_t heads = uint64_t{shape.n_heads} * shape.head_dim;
  const uint64_t kv_heads = uint64_t{shape.n_kv_heads} * shape.head_dim;
  return {{&layer::attn_q, "attn_q", weight_kind::matrix, shape.n_embedding, heads},
          {&layer::attn_k, "attn_k", weight_kind::matrix, shape.n_embedding, kv_heads},
          {&layer::attn_v, "attn_v", weight_kind::matrix, shape.n_embedding, kv_heads},
          {&layer::attn_output, "attn_output", weight_kind::matrix, heads, shape.n_embedding}};
}

std::vector<layer_weight> gated_weights(const hyperparameters& shape) {
  return {
      {&layer::ffn_gate, "ffn_gate", weight_kind::matrix, shape.n_embedding, shape.n_feed_forward},
      {&layer::ffn_up, "ffn_up", weight_kind::matrix, shape.n_embedding, shape.n_feed_forward},
      {&layer::ffn_down, "ffn_down", weight_kind::matrix, shape.n_feed_forward, shape.n_embedding}};
}

std::vector<layer_weight> head_norm_weights(const hyperparameters& shape) {
  return {{&layer::attn_q_norm, "attn_q_norm", weight_kind::norm, shape.head_dim},
          {&layer::attn_k_norm, "attn_k_norm", weight_kind::norm, shape.head_dim}};
}

std::vector<layer_weight> llama_weights(const hyperparameters& shape, uint32_t /*n*/) {
  std::vector<layer_weight> weights = {
      {&layer::attn_norm, "attn_norm", weight_kind::norm, shape.n_embedding}};
  append(weights, attention_weights(shape));
  weights.push_back({&layer::ffn_norm, "ffn_norm", weight_kind::norm, shape.n_embedding});
  append(weights, gated_weights(shape));
  return weights;
}

void append(std::vector<layer_weight>& to, const std::vector<layer_weight>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

}  // namespace bitnet::model

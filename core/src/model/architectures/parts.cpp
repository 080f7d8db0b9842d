#include "model/architectures/parts.hpp"

namespace bitnet::model {

std::vector<part> attention_parts(const hyperparameters& h) {
  const uint64_t heads = uint64_t{h.n_heads} * h.head_dim;
  const uint64_t kv_heads = uint64_t{h.n_kv_heads} * h.head_dim;
  return {{&layer::attn_q, "attn_q", part_kind::matrix, h.n_embedding, heads},
          {&layer::attn_k, "attn_k", part_kind::matrix, h.n_embedding, kv_heads},
          {&layer::attn_v, "attn_v", part_kind::matrix, h.n_embedding, kv_heads},
          {&layer::attn_output, "attn_output", part_kind::matrix, heads, h.n_embedding}};
}

std::vector<part> gated_parts(const hyperparameters& h) {
  return {{&layer::ffn_gate, "ffn_gate", part_kind::matrix, h.n_embedding, h.n_feed_forward},
          {&layer::ffn_up, "ffn_up", part_kind::matrix, h.n_embedding, h.n_feed_forward},
          {&layer::ffn_down, "ffn_down", part_kind::matrix, h.n_feed_forward, h.n_embedding}};
}

std::vector<part> head_norm_parts(const hyperparameters& h) {
  return {{&layer::attn_q_norm, "attn_q_norm", part_kind::norm, h.head_dim},
          {&layer::attn_k_norm, "attn_k_norm", part_kind::norm, h.head_dim}};
}

std::vector<part> llama_parts(const hyperparameters& h, uint32_t /*n*/) {
  std::vector<part> parts = {{&layer::attn_norm, "attn_norm", part_kind::norm, h.n_embedding}};
  append(parts, attention_parts(h));
  parts.push_back({&layer::ffn_norm, "ffn_norm", part_kind::norm, h.n_embedding});
  append(parts, gated_parts(h));
  return parts;
}

void append(std::vector<part>& to, const std::vector<part>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

}  // namespace bitnet::model

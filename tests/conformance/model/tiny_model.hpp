#pragma once
// A random model small enough to run in milliseconds, as weights and a graph of the contract.

#include <array>
#include <tuple>
#include <utility>

#include "model/model.hpp"

namespace bitnet::conformance {

struct tiny_shape {
  int64_t layers = 2, vocab = 50, embedding = 128, heads = 4, kv_heads = 2, head_dim = 32, ff = 200;
  bool sub_norms = true, head_norms = false, relu2 = true, neox = true, rope_factors = false;
  uint64_t scale_group = 0, activation_group = 0;
  int32_t rotated_block = 0;  // 0: weights are not rotated
  uint32_t embed_format = BITNET_FORMAT_F16, head_format = BITNET_FORMAT_F16;
  bool composites = true;
  uint32_t only_composite = 0;  // 0: all of them
  uint32_t seed = 1;
  bool products_first = false;  // q, k and v before norms of heads, as graphs of bitnet have them

  bool operator==(const tiny_shape&) const = default;
};

class tiny_model : public model {
 public:
  explicit tiny_model(const tiny_shape& shape) : shape_(shape), random_(shape.seed) {
    kv_layers = static_cast<uint32_t>(shape.layers);
    kv_heads = static_cast<uint32_t>(shape.kv_heads);
    head_dim = static_cast<uint32_t>(shape.head_dim);
    const int64_t q_width = shape.heads * shape.head_dim,
                  kv_width = shape.kv_heads * shape.head_dim;
    uint32_t x = value(BITNET_DTYPE_F32, BITNET_DIM_TOKENS, shape.embedding);
    op(BITNET_OP_EMBED_GATHER, {}, {x}, {dense(shape.embed_format, shape.embedding, shape.vocab)});
    x = rotated(x, BITNET_HADAMARD_FACTORS_LAST);
    const uint32_t factors =
        shape.rope_factors ? dense(BITNET_FORMAT_F32, shape.head_dim / 2, 1) : BITNET_NONE;
    for (int32_t layer = 0; layer < shape.layers; ++layer) {
      uint64_t at = begin();
      uint32_t h = norm(x);
      auto [q8, s] = quant(h);
      const auto [q, k, v] = queries(q8, s, q_width, kv_width);
      const uint32_t rq = rope(q, shape.heads, factors), rk = rope(k, shape.kv_heads, factors);
      op(BITNET_OP_KV_WRITE, {rk, v}, {}).ints[0] = layer;
      end(at, BITNET_OP_QKV_ROPE_KV, {x}, {rq});

      at = begin();
      uint32_t a = value(BITNET_DTYPE_F32, BITNET_DIM_TOKENS, q_width);
      bitnet_op& attention = op(BITNET_OP_ATTN_PAGED, {rq}, {a});
      const int32_t ints[] = {layer, static_cast<int32_t>(shape.heads),
                              static_cast<int32_t>(shape.kv_heads),
                              static_cast<int32_t>(shape.head_dim)};
      std::copy(std::begin(ints), std::end(ints), attention.ints);
      attention.floats[0] = 0.125f;
      if (shape.sub_norms) a = norm(a);
      std::tie(q8, s) = quant(a);
      x = residual(at, BITNET_OP_ATTN_OUT, {rq, x}, x, linear(q8, s, q_width, shape.embedding));

      at = begin();
      h = norm(x);
      std::tie(q8, s) = quant(h);
      const uint32_t gate = linear(q8, s, shape.embedding, shape.ff);
      const uint32_t up = linear(q8, s, shape.embedding, shape.ff);
      const uint32_t active = value(BITNET_DTYPE_F32, BITNET_DIM_TOKENS, shape.ff);
      op(shape.relu2 ? BITNET_OP_RELU2 : BITNET_OP_SILU, {gate}, {active});
      uint32_t g = value(BITNET_DTYPE_F32, BITNET_DIM_TOKENS, shape.ff);
      op(BITNET_OP_MUL, {active, up}, {g});
      if (shape.sub_norms) g = norm(g);
      std::tie(q8, s) = quant(g);
      x = residual(at, shape.relu2 ? BITNET_OP_FFN_RELU2_GATED : BITNET_OP_FFN_SILU_GATED, {x}, x,
                   linear(q8, s, shape.ff, shape.embedding));
    }
    const uint64_t at = begin();
    const uint32_t rows = value(BITNET_DTYPE_F32, BITNET_DIM_OUTPUTS, shape.embedding);
    op(BITNET_OP_GATHER_ROWS, {x}, {rows});
    const uint32_t h = norm(rows);
    logits = value(BITNET_DTYPE_F32, BITNET_DIM_OUTPUTS, shape.vocab);
    op(BITNET_OP_LINEAR_DENSE, {h}, {logits},
       {dense(shape.head_format, shape.embedding, shape.vocab)});
    end(at, BITNET_OP_LM_HEAD, {x}, {logits});
  }

  const tiny_shape& shape() const { return shape_; }

 private:
  uint64_t begin() const { return ops.size(); }
  // The ops since begin() become the body of a composite.
  void end(uint64_t at, uint32_t id, const indices& in, const indices& out) {
    if (!shape_.composites || (shape_.only_composite != 0 && shape_.only_composite != id)) return;
    bitnet_op composite = op(id, in, out);
    ops.pop_back();
    composite.body_count = static_cast<uint32_t>(ops.size() - at);
    ops.insert(ops.begin() + static_cast<int64_t>(at), composite);
  }

  uint32_t ternary(int64_t k, int64_t m) {
    const bool grouped =
        shape_.scale_group != 0 && k % static_cast<int64_t>(shape_.scale_group) == 0;
    return model::ternary(k, m, grouped ? shape_.scale_group : 0, random_);
  }
  uint32_t dense(uint32_t format, int64_t k, int64_t m) {
    return format == BITNET_FORMAT_TERNARY2 ? ternary(k, m) : model::dense(format, k, m, random_);
  }

  uint32_t norm(uint32_t x) {
    const uint32_t y = value(BITNET_DTYPE_F32, values[x].dims[0], values[x].dims[1]);
    op(BITNET_OP_RMS_NORM, {x}, {y}, {dense(BITNET_FORMAT_F32, values[x].dims[1], 1)}).floats[0] =
        1e-5f;
    return y;
  }
  uint32_t head_norm(uint32_t x, int64_t heads) {
    if (!shape_.head_norms) return x;
    const uint32_t y = value(BITNET_DTYPE_F32, BITNET_DIM_TOKENS, values[x].dims[1]);
    bitnet_op& o =
        op(BITNET_OP_RMS_NORM_HEADS, {x}, {y}, {dense(BITNET_FORMAT_F32, shape_.head_dim, 1)});
    o.ints[0] = static_cast<int32_t>(heads);
    o.floats[0] = 1e-6f;
    return y;
  }
  std::array<uint32_t, 3> queries(uint32_t q8, uint32_t s, int64_t q_width, int64_t kv_width) {
    const auto product = [&](int64_t m) { return linear(q8, s, shape_.embedding, m); };
    if (shape_.products_first) {
      const uint32_t q = product(q_width), k = product(kv_width), v = product(kv_width);
      return {head_norm(q, shape_.heads), head_norm(k, shape_.kv_heads), v};
    }
    const uint32_t q = head_norm(product(q_width), shape_.heads);
    const uint32_t k = head_norm(product(kv_width), shape_.kv_heads);
    return {q, k, product(kv_width)};
  }
  uint32_t rotated(uint32_t x, int32_t place) {
    if (shape_.rotated_block == 0) return x;
    const int64_t k = values[x].dims[1];
    const uint32_t y = value(BITNET_DTYPE_F32, BITNET_DIM_TOKENS, k);
    bitnet_op& o = op(BITNET_OP_HADAMARD, {x}, {y}, {dense(BITNET_FORMAT_F32, k, 1)});
    o.ints[0] = shape_.rotated_block;
    o.ints[1] = place;
    return y;
  }
  std::pair<uint32_t, uint32_t> quant(uint32_t x) {
    x = rotated(x, BITNET_HADAMARD_FACTORS_FIRST);
    const int64_t k = values[x].dims[1], group = static_cast<int64_t>(shape_.activation_group);
    const uint32_t q = value(BITNET_DTYPE_I8, BITNET_DIM_TOKENS, k);
    const uint32_t s = value(BITNET_DTYPE_F32, BITNET_DIM_TOKENS, group == 0 ? 1 : k / group);
    op(group == 0 ? BITNET_OP_ACT_QUANT_I8 : BITNET_OP_ACT_QUANT_I8_GROUPED, {x}, {q, s}).ints[0] =
        static_cast<int32_t>(group);
    return {q, s};
  }
  uint32_t linear(uint32_t q, uint32_t s, int64_t k, int64_t m) {
    const uint32_t y = value(BITNET_DTYPE_F32, BITNET_DIM_TOKENS, m);
    op(shape_.activation_group == 0 ? BITNET_OP_LINEAR_TERNARY : BITNET_OP_LINEAR_TERNARY_GROUPED,
       {q, s}, {y}, {ternary(k, m)});
    return y;
  }
  uint32_t rope(uint32_t x, int64_t heads, uint32_t factors) {
    const uint32_t y = value(BITNET_DTYPE_F32, BITNET_DIM_TOKENS, values[x].dims[1]);
    bitnet_op& o = op(BITNET_OP_ROPE, {x}, {y}, {factors});
    o.ints[0] = static_cast<int32_t>(heads);
    o.ints[1] = o.ints[2] = static_cast<int32_t>(shape_.head_dim);
    o.ints[3] = shape_.neox ? BITNET_ROPE_NEOX : BITNET_ROPE_INTERLEAVED;
    o.floats[0] = 10000.0f;
    o.floats[1] = 1.0f;
    return y;
  }
  uint32_t residual(uint64_t at, uint32_t composite, const indices& in, uint32_t x, uint32_t y) {
    const uint32_t sum = value(BITNET_DTYPE_F32, BITNET_DIM_TOKENS, shape_.embedding);
    op(BITNET_OP_ADD, {x, y}, {sum});
    end(at, composite, in, {sum});
    return sum;
  }

  tiny_shape shape_;
  std::mt19937 random_;
};

}  // namespace bitnet::conformance

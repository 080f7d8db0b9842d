#pragma once
// A random model small enough to run in milliseconds, as weights and a graph of the contract.

#include <cstring>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "bitnet/abi/backend.h"
#include "bitnet/sdk/formats.hpp"

namespace bitnet::parity {

struct tiny_shape {
  int64_t layers = 2, vocab = 50, embedding = 128, heads = 4, kv_heads = 2, head_dim = 32, ff = 200;
  bool sub_norms = true, relu2 = true, neox = true, rope_factors = false;
  uint64_t scale_group = 0;
  uint32_t embed_format = BITNET_FORMAT_F16, head_format = BITNET_FORMAT_F16;
  bool composites = true;
  uint32_t seed = 1;

  bool operator==(const tiny_shape&) const = default;
};

struct tiny_tensor {
  bitnet_tensor_desc desc{};
  std::vector<uint8_t> data;
  std::vector<float> scales;
};

// One TERNARY2 row-major matrix from its values.
inline std::vector<uint8_t> pack_ternary(std::span<const int8_t> t, uint64_t k, uint64_t m) {
  const uint64_t row = (k + 127) / 128 * 32;
  std::vector<uint8_t> out(row * m, 0x55);  // code 1 everywhere: zeros past the end of a row
  for (uint64_t r = 0; r < m; ++r) {
    for (uint64_t i = 0; i < k; ++i) {
      uint8_t& byte = out[r * row + i / 128 * 32 + i % 32];
      const int shift = 6 - 2 * static_cast<int>(i % 128 / 32);
      byte = static_cast<uint8_t>((byte & ~(3 << shift)) | (t[r * k + i] + 1) << shift);
    }
  }
  return out;
}

class tiny_model {
 public:
  explicit tiny_model(const tiny_shape& shape) : shape_(shape), random_(shape.seed) {
    const int64_t q_width = shape.heads * shape.head_dim,
                  kv_width = shape.kv_heads * shape.head_dim;
    uint32_t x = value(BITNET_DTYPE_F32, BITNET_DIM_TOKENS, shape.embedding);
    op(BITNET_OP_EMBED_GATHER, {}, {x}, {dense(shape.embed_format, shape.embedding, shape.vocab)});
    const uint32_t factors =
        shape.rope_factors ? dense(BITNET_FORMAT_F32, shape.head_dim / 2, 1) : BITNET_NONE;
    for (int32_t layer = 0; layer < shape.layers; ++layer) {
      uint64_t at = begin();
      uint32_t h = norm(x);
      auto [q8, s] = quant(h);
      const uint32_t q = linear(q8, s, shape.embedding, q_width);
      const uint32_t k = linear(q8, s, shape.embedding, kv_width);
      const uint32_t v = linear(q8, s, shape.embedding, kv_width);
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

  bitnet_graph graph() const {
    bitnet_graph g{};
    g.struct_size = sizeof g;
    g.value_size = sizeof(bitnet_value);
    g.op_size = sizeof(bitnet_op);
    g.n_values = static_cast<uint32_t>(values.size());
    g.n_ops = static_cast<uint32_t>(ops.size());
    g.logits = logits;
    g.values = values.data();
    g.ops = ops.data();
    return g;
  }
  std::vector<bitnet_tensor_desc> descs() const {
    std::vector<bitnet_tensor_desc> out;
    for (const tiny_tensor& t : tensors) {
      out.push_back(t.desc);
      out.back().scales = t.scales.data();
    }
    return out;
  }

  std::vector<bitnet_value> values;
  std::vector<bitnet_op> ops;
  std::vector<tiny_tensor> tensors;
  uint32_t logits = 0;

 protected:
  // For who puts ops and weights together by hand; of the shape vocab is the width of the logits.
  struct by_hand {};
  tiny_model(const tiny_shape& shape, by_hand) : shape_(shape), random_(shape.seed) {}

  using indices = std::vector<uint32_t>;

  uint32_t value(uint32_t dtype, int64_t rows, int64_t width) {
    values.push_back({dtype, 0, {rows, width}});
    return static_cast<uint32_t>(values.size() - 1);
  }
  bitnet_op& op(uint32_t id, const indices& in, const indices& out, const indices& weights = {}) {
    bitnet_op o{};
    o.op = id;
    const auto put = [](uint32_t(&to)[4], const indices& from) {
      std::fill(std::begin(to), std::end(to), BITNET_NONE);
      std::copy(from.begin(), from.end(), to);
    };
    put(o.inputs, in);
    put(o.outputs, out);
    put(o.weights, weights);
    ops.push_back(o);
    return ops.back();
  }
  uint64_t begin() {
    if (shape_.composites) ops.emplace_back();
    return ops.size() - 1;
  }
  void end(uint64_t at, uint32_t id, const indices& in, const indices& out) {
    if (!shape_.composites) return;
    const bitnet_op composite = op(id, in, out);
    ops.pop_back();
    ops[at] = composite;
    ops[at].body_count = static_cast<uint32_t>(ops.size() - at - 1);
  }

  uint32_t add(bitnet_tensor_desc desc, std::vector<uint8_t> data, std::vector<float> scales) {
    desc.struct_size = sizeof desc;
    desc.ne[2] = desc.ne[3] = 1;
    desc.data_bytes = data.size();
    desc.n_scales = scales.size();
    tensors.push_back({desc, std::move(data), std::move(scales)});
    return static_cast<uint32_t>(tensors.size() - 1);
  }
  float uniform(float low, float high) {
    return low + (high - low) * static_cast<float>(random_() % 65536) / 65536.0f;
  }
  uint32_t ternary(int64_t k, int64_t m) {
    std::vector<int8_t> t(static_cast<uint64_t>(k * m));
    for (int8_t& v : t) v = static_cast<int8_t>(static_cast<int>(random_() % 3) - 1);
    bitnet_tensor_desc desc{};
    desc.format = BITNET_FORMAT_TERNARY2;
    desc.rank = 2;
    desc.ne[0] = k;
    desc.ne[1] = m;
    const bool grouped =
        shape_.scale_group != 0 && k % static_cast<int64_t>(shape_.scale_group) == 0;
    desc.scale_group = grouped ? shape_.scale_group : 0;
    std::vector<float> scales(grouped ? t.size() / shape_.scale_group : 1);
    for (float& s : scales) s = uniform(0.01f, 0.06f);
    return add(desc, pack_ternary(t, static_cast<uint64_t>(k), static_cast<uint64_t>(m)),
               std::move(scales));
  }
  uint32_t dense(uint32_t format, int64_t k, int64_t m) {
    bitnet_tensor_desc desc{};
    desc.format = format;
    desc.rank = m == 1 ? 1 : 2;
    desc.ne[0] = k;
    desc.ne[1] = m;
    const sdk::format& f = *sdk::find_format(format);
    const uint64_t row = sdk::row_bytes(f, static_cast<uint64_t>(k));
    std::vector<uint8_t> data(row * static_cast<uint64_t>(m));
    for (uint8_t& b : data) b = static_cast<uint8_t>(random_());
    const auto half = [&](uint64_t at) {
      const uint16_t h = sdk::f32_to_f16(uniform(-0.02f, 0.02f));
      std::memcpy(data.data() + at, &h, sizeof h);
    };
    for (uint64_t at = 0; at < data.size(); at += f.block_bytes) {
      if (format == BITNET_FORMAT_F32 || format == BITNET_FORMAT_BF16) {
        const float v = m == 1 ? uniform(0.5f, 1.5f) : uniform(-1.0f, 1.0f);
        const auto* bytes = reinterpret_cast<const uint8_t*>(&v);
        std::memcpy(data.data() + at, format == BITNET_FORMAT_F32 ? bytes : bytes + 2,
                    f.block_bytes);
      } else if (format == BITNET_FORMAT_Q6_K) {
        half(at + 208);
      } else if (format != BITNET_FORMAT_TERNARY2) {
        half(at);
        if (format == BITNET_FORMAT_Q4_K) half(at + 2);
      }
    }
    if (format == BITNET_FORMAT_TERNARY2) return ternary(k, m);
    return add(desc, std::move(data), {});
  }

  uint32_t norm(uint32_t x) {
    const uint32_t y = value(BITNET_DTYPE_F32, values[x].dims[0], values[x].dims[1]);
    op(BITNET_OP_RMS_NORM, {x}, {y}, {dense(BITNET_FORMAT_F32, values[x].dims[1], 1)}).floats[0] =
        1e-5f;
    return y;
  }
  std::pair<uint32_t, uint32_t> quant(uint32_t x) {
    const uint32_t q = value(BITNET_DTYPE_I8, BITNET_DIM_TOKENS, values[x].dims[1]);
    const uint32_t s = value(BITNET_DTYPE_F32, BITNET_DIM_TOKENS, 1);
    op(BITNET_OP_ACT_QUANT_I8, {x}, {q, s});
    return {q, s};
  }
  uint32_t linear(uint32_t q, uint32_t s, int64_t k, int64_t m) {
    const uint32_t y = value(BITNET_DTYPE_F32, BITNET_DIM_TOKENS, m);
    op(BITNET_OP_LINEAR_TERNARY, {q, s}, {y}, {ternary(k, m)});
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

}  // namespace bitnet::parity

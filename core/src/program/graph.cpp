#include "program/graph.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <span>
#include <vector>

namespace bitnet::program {
namespace {

class builder {
 public:
  builder(const model::model& m, uint32_t n_context)
      : model_(m),
        shape_(m.shape()),
        rotation_(m.rotation_of(n_context)),
        local_rotation_(m.local_rotation()) {}

  graph build() && {
    uint32_t x = value(BITNET_DTYPE_F32, BITNET_DIM_TOKENS, shape_.n_embedding);
    emit(BITNET_OP_EMBED_GATHER, {}, {x}, {model_.token_embedding()});
    x = transformed(x, model_.embedding_transform(), BITNET_HADAMARD_FACTORS_LAST);
    x = scaled(x, shape_.embedding_scale);
    for (uint32_t i = 0; i < shape_.n_layers; ++i) {
      const model::layer& l = model_.layers()[i];
      x = shape_.is_recurrent(i) ? recurrent(l, x) : attention(l, i, x);
      x = feed_forward(l, x);
    }
    const uint32_t logits = head(x);
    out_.add_facts();
    out_.add_port(BITNET_PORT_LOGITS, logits);
    return std::move(out_);
  }

 private:
  uint32_t value(uint32_t dtype, int64_t rows, int64_t columns) {
    return out_.value(dtype, rows, columns);
  }
  uint32_t activation(int64_t columns) {
    return value(BITNET_DTYPE_F32, BITNET_DIM_TOKENS, columns);
  }
  bitnet_op& emit(uint32_t op, std::initializer_list<uint32_t> inputs,
                  std::initializer_list<uint32_t> outputs,
                  std::initializer_list<uint32_t> weights = {}) {
    return out_.emit(op, inputs, outputs, weights);
  }

  [[nodiscard]] const model::weight& weight(uint32_t index) const {
    return model_.weights()[index];
  }
  [[nodiscard]] bool ternary(uint32_t index) const {
    return weight(index).format == BITNET_FORMAT_TERNARY2;
  }

  // Whether its input goes through no transform.
  [[nodiscard]] bool is_plain(uint32_t index) const { return weight(index).of_input.block == 0; }
  [[nodiscard]] bool all_plainly_ternary(std::initializer_list<uint32_t> all) const {
    return std::ranges::all_of(all, [&](uint32_t w) { return ternary(w) && is_plain(w); });
  }

  uint32_t norm(uint32_t x, uint32_t w) {
    const uint32_t y = value(BITNET_DTYPE_F32, out_.values[x].dims[0], out_.values[x].dims[1]);
    emit(BITNET_OP_RMS_NORM, {x}, {y}, {w}).floats[0] = shape_.rms_epsilon;
    return y;
  }

  uint32_t scaled(uint32_t x, float factor) {
    if (factor == 1) return x;
    const uint32_t y = activation(out_.values[x].dims[1]);
    emit(BITNET_OP_SCALE, {x}, {y}).floats[0] = factor;
    return y;
  }

  // What attention or the gated product adds.
  uint32_t post_norm(uint32_t x, uint32_t w) { return w == model::no_weight ? x : norm(x, w); }

  [[nodiscard]] bool windowed(uint32_t layer) const {
    return !shape_.windowed.empty() && shape_.windowed[layer];
  }

  uint32_t head_norm(uint32_t x, uint32_t w, uint32_t heads) {
    if (w == model::no_weight) return x;
    const uint32_t y = activation(out_.values[x].dims[1]);
    bitnet_op& o = emit(BITNET_OP_RMS_NORM_HEADS, {x}, {y}, {w});
    o.ints[0] = static_cast<int32_t>(heads);
    o.floats[0] = shape_.rms_epsilon;
    return y;
  }

  uint32_t transformed(uint32_t x, const model::transform& by, int32_t place) {
    if (by.block == 0) return x;
    const uint32_t y = value(BITNET_DTYPE_F32, out_.values[x].dims[0], out_.values[x].dims[1]);
    bitnet_op& o = emit(BITNET_OP_HADAMARD, {x}, {y});
    if (by.factors != model::no_weight) o.weights[0] = by.factors;
    o.ints[0] = static_cast<int32_t>(by.block);
    o.ints[1] = place;
    return y;
  }

  // What linear layers of one kind read.
  struct quantised {
    uint32_t x = BITNET_NONE;  // the f32 input, for dense linears
    uint32_t q = BITNET_NONE, s = BITNET_NONE;
    uint32_t group = 0;  // elements of a row that share a scale; 0: all
  };
  // That all ternary readers can take; 0 if one of them cannot take groups.
  [[nodiscard]] uint32_t group_for(std::span<const uint32_t> readers) const {
    uint32_t group = shape_.activation_group;
    for (const uint32_t w : readers)
      if (ternary(w)) group = model::activation_group_of(weight(w), group);
    return group;
  }
  quantised quantise(uint32_t x, std::span<const uint32_t> readers) {
    quantised out{x};
    if (std::ranges::any_of(readers, [&](uint32_t w) { return ternary(w); })) {
      const int64_t rows = out_.values[x].dims[0];
      out.q = value(BITNET_DTYPE_I8, rows, out_.values[x].dims[1]);
      out.group = group_for(readers);
      if (out.group == 0) {
        out.s = value(BITNET_DTYPE_F32, rows, 1);
        emit(BITNET_OP_ACT_QUANT_I8, {x}, {out.q, out.s});
      } else {
        out.s = value(BITNET_DTYPE_F32, rows, out_.values[x].dims[1] / out.group);
        emit(BITNET_OP_ACT_QUANT_I8_GROUPED, {x}, {out.q, out.s}).ints[0] =
            static_cast<int32_t>(out.group);
      }
    }
    return out;
  }
  struct both_kinds {
    quantised plain, transformed;
  };
  both_kinds read_by(uint32_t x, std::initializer_list<uint32_t> readers) {
    std::vector<uint32_t> plain, turned;
    for (const uint32_t w : readers) (is_plain(w) ? plain : turned).push_back(w);
    both_kinds out{quantise(x, plain), {}};
    if (turned.empty()) return out;
    const model::transform& by = weight(turned[0]).of_input;
    out.transformed = quantise(transformed(x, by, BITNET_HADAMARD_FACTORS_FIRST), turned);
    return out;
  }
  uint32_t linear(const both_kinds& given, uint32_t w) {
    const quantised& in = is_plain(w) ? given.plain : given.transformed;
    const uint32_t y = value(BITNET_DTYPE_F32, out_.values[in.x].dims[0], weight(w).ne[1]);
    if (ternary(w))
      emit(in.group == 0 ? BITNET_OP_LINEAR_TERNARY : BITNET_OP_LINEAR_TERNARY_GROUPED,
           {in.q, in.s}, {y}, {w});
    else
      emit(BITNET_OP_LINEAR_DENSE, {in.x}, {y}, {w});
    return y;
  }
  [[nodiscard]] const model::rotation& rotation_of(uint32_t layer) const {
    return windowed(layer) ? local_rotation_ : rotation_;
  }
  uint32_t rope(uint32_t x, uint32_t heads, const model::rotation& by) {
    const uint32_t y = activation(out_.values[x].dims[1]);
    bitnet_op& o = emit(BITNET_OP_ROPE, {x}, {y});
    if (by.divisors != model::no_weight) o.weights[0] = by.divisors;
    o.ints[0] = static_cast<int32_t>(heads);
    o.ints[1] = static_cast<int32_t>(shape_.head_dim);
    o.ints[2] = static_cast<int32_t>(shape_.rope_dims);
    o.ints[3] = shape_.rope_neox ? BITNET_ROPE_NEOX : BITNET_ROPE_INTERLEAVED;
    o.floats[0] = by.base;
    o.floats[1] = by.scale;
    return y;
  }

  struct queried {
    uint32_t q, gate = BITNET_NONE;
  };
  queried query(const model::layer& l, uint32_t layer, uint32_t x) {
    const std::size_t at = out_.begin();
    const uint32_t h = norm(x, l.attn_norm);
    const both_kinds in = read_by(h, {l.attn_q, l.attn_k, l.attn_v});
    uint32_t q = linear(in, l.attn_q), gate = BITNET_NONE;
    if (shape_.gated_attention) {
      // Beside each head its gate.
      const auto dim = static_cast<int32_t>(shape_.head_dim);
      const auto heads = static_cast<int32_t>(shape_.n_heads);
      gate = columns(q, {dim, dim, heads, 2 * dim, 1, 0});
      q = columns(q, {dim, 0, heads, 2 * dim, 1, 0});
    }
    const uint32_t k = linear(in, l.attn_k);
    const uint32_t v = linear(in, l.attn_v);
    const model::rotation& by = rotation_of(layer);
    const uint32_t rotated = rope(head_norm(q, l.attn_q_norm, shape_.n_heads), shape_.n_heads, by);
    const uint32_t rotated_k =
        rope(head_norm(k, l.attn_k_norm, shape_.n_kv_heads), shape_.n_kv_heads, by);
    emit(BITNET_OP_KV_WRITE, {rotated_k, v}, {}).ints[0] = n_attending_;
    if (all_plainly_ternary({l.attn_q, l.attn_k, l.attn_v}) && !shape_.gated_attention)
      out_.end(at, BITNET_OP_QKV_ROPE_KV, {x}, {rotated});
    else
      out_.drop(at);
    return {rotated, gate};
  }

  uint32_t attention_output(const model::layer& l, uint32_t layer, const queried& by, uint32_t x) {
    const std::size_t at = out_.begin();
    uint32_t a = activation(int64_t{shape_.n_heads} * shape_.head_dim);
    bitnet_op& o = emit(BITNET_OP_ATTN_PAGED, {by.q}, {a});
    o.ints[0] = n_attending_;
    o.ints[1] = static_cast<int32_t>(shape_.n_heads);
    o.ints[2] = static_cast<int32_t>(shape_.n_kv_heads);
    o.ints[3] = static_cast<int32_t>(shape_.head_dim);
    if (windowed(layer)) o.ints[4] = static_cast<int32_t>(shape_.window);
    // Larger queries and keys are larger logits; the stored keys stay as they are.
    const float magnitude = rotation_of(layer).magnitude;
    o.floats[0] = magnitude * magnitude / shape_.attention_divisor;
    if (shape_.gated_attention) a = product(a, through(BITNET_OP_SIGMOID, by.gate));
    if (l.attn_sub_norm != model::no_weight) a = norm(a, l.attn_sub_norm);
    const uint32_t y =
        post_norm(linear(read_by(a, {l.attn_output}), l.attn_output), l.post_attention_norm);
    const uint32_t sum = activation(shape_.n_embedding);
    emit(BITNET_OP_ADD, {x, y}, {sum});
    // Another composite would have the norm or the gate, and other kernels the window.
    if (all_plainly_ternary({l.attn_output}) && !shape_.post_norms && !windowed(layer) &&
        !shape_.gated_attention)
      out_.end(at, BITNET_OP_ATTN_OUT, {by.q, x}, {sum});
    else
      out_.drop(at);
    return sum;
  }

  uint32_t attention(const model::layer& l, uint32_t layer, uint32_t x) {
    const uint32_t sum = attention_output(l, layer, query(l, layer, x), x);
    ++n_attending_;
    return sum;
  }

  // What goes through an op that has one input of its own shape.
  uint32_t through(uint32_t op, uint32_t x) {
    const uint32_t y = activation(out_.values[x].dims[1]);
    emit(op, {x}, {y});
    return y;
  }
  uint32_t product(uint32_t a, uint32_t b) {
    const uint32_t y = activation(out_.values[a].dims[1]);
    emit(BITNET_OP_MUL, {a, b}, {y});
    return y;
  }
  // `ints` as COLUMNS has them.
  uint32_t columns(uint32_t x, const std::array<int32_t, 6>& ints) {
    const uint32_t y = activation(int64_t{ints[0]} * ints[2] * ints[4]);
    std::ranges::copy(ints, emit(BITNET_OP_COLUMNS, {x}, {y}).ints);
    return y;
  }

  // A short convolution over queries, keys and values, then the delta rule; norms of heads and a
  // gate on the way out.
  uint32_t recurrent(const model::layer& l, uint32_t x) {
    const model::recurrence& r = shape_.recurrence;
    const auto n_k = static_cast<int32_t>(r.key_heads), n_v = static_cast<int32_t>(r.value_heads);
    const auto d_k = static_cast<int32_t>(r.key_dim), d_v = static_cast<int32_t>(r.value_dim);
    const both_kinds in =
        read_by(norm(x, l.attn_norm), {l.attn_qkv, l.attn_gate, l.ssm_alpha, l.ssm_beta});
    const uint32_t mixed = activation(static_cast<int64_t>(r.channels()));
    emit(BITNET_OP_SHORT_CONV, {linear(in, l.attn_qkv)}, {mixed}, {l.ssm_conv}).ints[0] =
        static_cast<int32_t>(state_);
    const uint32_t active = through(BITNET_OP_SILU, mixed);
    const uint32_t gates = activation(int64_t{2} * n_v);
    emit(BITNET_OP_DELTA_GATES, {linear(in, l.ssm_alpha), linear(in, l.ssm_beta)}, {gates},
         {l.ssm_gates});
    const uint32_t y = activation(static_cast<int64_t>(r.values()));
    bitnet_op& rule = emit(BITNET_OP_DELTA_RULE, {active, gates}, {y});
    const auto first = static_cast<int32_t>(state_ + r.rows_elements());
    std::ranges::copy(std::array{first, n_k, n_v, d_k, d_v, BITNET_DELTA_TURNS}, rule.ints);
    rule.floats[0] = 1 / std::sqrt(static_cast<float>(d_k));
    rule.floats[1] = shape_.rms_epsilon;
    state_ += r.elements();
    uint32_t out = product(head_norm(y, l.ssm_norm, r.value_heads),
                           through(BITNET_OP_SILU, linear(in, l.attn_gate)));
    if (r.regrouped && !is_plain(l.ssm_out))
      out = columns(out, {d_v, 0, n_v / n_k, n_k * d_v, n_k, d_v});
    const uint32_t sum = activation(shape_.n_embedding);
    emit(BITNET_OP_ADD, {x, linear(read_by(out, {l.ssm_out}), l.ssm_out)}, {sum});
    return sum;
  }

  static uint32_t gate_op(model::activation gate) {
    switch (gate) {
      case model::activation::relu2:
        return BITNET_OP_RELU2;
      case model::activation::gelu:
        return BITNET_OP_GELU;
      case model::activation::silu:
        break;
    }
    return BITNET_OP_SILU;
  }

  uint32_t feed_forward(const model::layer& l, uint32_t x) {
    const std::size_t at = out_.begin();
    const uint32_t h = norm(x, l.ffn_norm);
    const both_kinds in = read_by(h, {l.ffn_gate, l.ffn_up});
    const uint32_t gate = linear(in, l.ffn_gate);
    const uint32_t up = linear(in, l.ffn_up);
    uint32_t g = product(through(gate_op(shape_.gate), gate), up);
    if (l.ffn_sub_norm != model::no_weight) g = norm(g, l.ffn_sub_norm);
    const uint32_t y = post_norm(linear(read_by(g, {l.ffn_down}), l.ffn_down), l.post_ffw_norm);
    const uint32_t sum = activation(shape_.n_embedding);
    emit(BITNET_OP_ADD, {x, y}, {sum});
    const bool known = shape_.gate != model::activation::gelu && !shape_.post_norms;
    if (known && all_plainly_ternary({l.ffn_gate, l.ffn_up, l.ffn_down}))
      out_.end(at,
               shape_.gate == model::activation::relu2 ? BITNET_OP_FFN_RELU2_GATED
                                                       : BITNET_OP_FFN_SILU_GATED,
               {x}, {sum});
    else
      out_.drop(at);
    return sum;
  }

  uint32_t head(uint32_t x) {
    const std::size_t at = out_.begin();
    const uint32_t rows = value(BITNET_DTYPE_F32, BITNET_DIM_OUTPUTS, shape_.n_embedding);
    emit(BITNET_OP_GATHER_ROWS, {x}, {rows});
    const uint32_t h = norm(rows, model_.output_norm());
    const uint32_t logits = linear(read_by(h, {model_.output()}), model_.output());
    if (!ternary(model_.output()) && is_plain(model_.output()))
      out_.end(at, BITNET_OP_LM_HEAD, {x}, {logits});
    else
      out_.drop(at);
    return logits;
  }

  const model::model& model_;
  const model::hyperparameters& shape_;
  const model::rotation rotation_, local_rotation_;
  int32_t n_attending_ = 0;  // layers so far that have keys
  uint64_t state_ = 0;       // elements of a state that are in use so far
  graph out_;
};

}  // namespace

graph describe(const model::model& m, uint32_t n_context) {
  return builder(m, n_context).build();
}

}  // namespace bitnet::program

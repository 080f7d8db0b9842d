#include "model/architectures/graph_builder.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "model/architectures/architecture.hpp"

namespace bitnet::model {

compute::graph graph_builder::build(ending what, const section& of) && {
  const uint32_t first = activation(m_.shape.n_embedding);
  uint32_t x = first;
  if (of.embedding) {
    emit(BITNET_OP_EMBED_GATHER, {}, {x}, {m_.token_embedding});
    x = transformed(x, m_.embedding_transform, BITNET_HADAMARD_FACTORS_LAST);
    x = scaled(x, m_.shape.embedding_scale);
  }
  for (uint32_t n = of.first; n < of.last; ++n) x = m_.shape.arch->layer(*this, n, x);
  const bool hidden = what == ending::hidden || !of.lm_head;
  if (of.lm_head)
    x = hidden ? norm(asked_rows(x), m_.output_norm) : m_.shape.arch->lm_head(*this, x);
  out_.add_facts();
  if (!of.embedding) out_.add_port(BITNET_PORT_VALUE_IN, first);
  out_.add_port(hidden ? BITNET_PORT_VALUE_OUT : BITNET_PORT_LOGITS, x);
  return std::move(out_);
}

bool graph_builder::all_plainly_ternary(std::initializer_list<uint32_t> all) const {
  return std::ranges::all_of(all, [&](uint32_t w) { return ternary(w) && is_plain(w); });
}

uint32_t graph_builder::norm(uint32_t x, uint32_t w) {
  const uint32_t y = value(BITNET_DTYPE_F32, out_.values[x].dims[0], out_.values[x].dims[1]);
  emit(BITNET_OP_RMS_NORM, {x}, {y}, {w}).floats[0] = m_.shape.rms_epsilon;
  return y;
}

uint32_t graph_builder::head_norm(uint32_t x, uint32_t w, uint32_t heads) {
  if (w == no_weight) return x;
  const uint32_t y = activation(out_.values[x].dims[1]);
  bitnet_op& o = emit(BITNET_OP_RMS_NORM_HEADS, {x}, {y}, {w});
  o.ints[0] = static_cast<int32_t>(heads);
  o.floats[0] = m_.shape.rms_epsilon;
  return y;
}

uint32_t graph_builder::scaled(uint32_t x, float factor) {
  if (factor == 1) return x;
  const uint32_t y = value(BITNET_DTYPE_F32, out_.values[x].dims[0], out_.values[x].dims[1]);
  emit(BITNET_OP_SCALE, {x}, {y}).floats[0] = factor;
  return y;
}

uint32_t graph_builder::add(uint32_t a, uint32_t b) {
  const uint32_t sum = activation(out_.values[a].dims[1]);
  emit(BITNET_OP_ADD, {a, b}, {sum});
  return sum;
}

uint32_t graph_builder::product(uint32_t a, uint32_t b) {
  const uint32_t y = activation(out_.values[a].dims[1]);
  emit(BITNET_OP_MUL, {a, b}, {y});
  return y;
}

uint32_t graph_builder::through(uint32_t op, uint32_t x) {
  const uint32_t y = activation(out_.values[x].dims[1]);
  emit(op, {x}, {y});
  return y;
}

uint32_t graph_builder::columns(uint32_t x, const column_parts& parts) {
  const uint32_t y = activation(int64_t{parts.length} * parts.inner * parts.outer);
  const std::array ints{parts.length,       parts.first, parts.inner,
                        parts.inner_stride, parts.outer, parts.outer_stride};
  std::ranges::copy(ints, emit(BITNET_OP_COLUMNS, {x}, {y}).ints);
  return y;
}

uint32_t graph_builder::asked_rows(uint32_t x) {
  const uint32_t rows = value(BITNET_DTYPE_F32, BITNET_DIM_OUTPUTS, out_.values[x].dims[1]);
  emit(BITNET_OP_GATHER_ROWS, {x}, {rows});
  return rows;
}

uint32_t graph_builder::transformed(uint32_t x, const transform& by, int32_t place) {
  if (by.block == 0) return x;
  const uint32_t y = value(BITNET_DTYPE_F32, out_.values[x].dims[0], out_.values[x].dims[1]);
  bitnet_op& o = emit(BITNET_OP_HADAMARD, {x}, {y});
  if (by.factors != no_weight) o.weights[0] = by.factors;
  o.ints[0] = static_cast<int32_t>(by.block);
  o.ints[1] = place;
  return y;
}

// The group size that all ternary readers support; 0 if one supports none.
uint32_t graph_builder::group_for(std::span<const uint32_t> readers) const {
  uint32_t group = m_.shape.activation_group;
  for (const uint32_t w : readers)
    if (ternary(w)) group = activation_group_of(m_.weights[w], group);
  return group;
}

graph_builder::quantised graph_builder::quantise(uint32_t x, std::span<const uint32_t> readers) {
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

graph_builder::readable graph_builder::read_by(uint32_t x,
                                               std::initializer_list<uint32_t> readers) {
  std::vector<uint32_t> plain, turned;
  for (const uint32_t w : readers)
    if (m_.weights[w].input_norm == no_weight) (is_plain(w) ? plain : turned).push_back(w);
  readable out{x, quantise(x, plain), {}};
  if (turned.empty()) return out;
  const transform& by = m_.weights[turned[0]].of_input;
  out.transformed = quantise(transformed(x, by, BITNET_HADAMARD_FACTORS_FIRST), turned);
  return out;
}

uint32_t graph_builder::linear(const readable& given, uint32_t w) {
  const uint32_t own = m_.weights[w].input_norm;
  const quantised in = own != no_weight ? quantise(norm(given.x, own), {&w, 1})
                       : is_plain(w)    ? given.plain
                                        : given.transformed;
  const uint32_t y = value(BITNET_DTYPE_F32, out_.values[in.x].dims[0], m_.weights[w].ne[1]);
  if (ternary(w))
    emit(in.group == 0 ? BITNET_OP_LINEAR_TERNARY : BITNET_OP_LINEAR_TERNARY_GROUPED, {in.q, in.s},
         {y}, {w});
  else
    emit(BITNET_OP_LINEAR_DENSE, {in.x}, {y}, {w});
  return y;
}

uint32_t graph_builder::rope(uint32_t x, uint32_t heads, uint32_t n) {
  const rotation& by = rotation_of(n);
  const uint32_t y = activation(out_.values[x].dims[1]);
  bitnet_op& o = emit(BITNET_OP_ROPE, {x}, {y});
  if (by.divisors != no_weight) o.weights[0] = by.divisors;
  o.ints[0] = static_cast<int32_t>(heads);
  o.ints[1] = static_cast<int32_t>(m_.shape.head_dim);
  o.ints[2] = static_cast<int32_t>(m_.shape.rope_dims);
  o.ints[3] = m_.shape.rope_neox ? BITNET_ROPE_NEOX : BITNET_ROPE_INTERLEAVED;
  o.floats[0] = by.base;
  o.floats[1] = by.scale;
  return y;
}

void graph_builder::keep(uint32_t k, uint32_t v) {
  emit(BITNET_OP_KV_WRITE, {k, v}, {}).ints[0] = n_attending_;
}

uint32_t graph_builder::attend(uint32_t q, uint32_t n) {
  const hyperparameters& shape = m_.shape;
  const uint32_t a = activation(int64_t{shape.n_heads} * shape.head_dim);
  bitnet_op& o = emit(BITNET_OP_ATTN_PAGED, {q}, {a});
  o.ints[0] = n_attending_++;
  o.ints[1] = static_cast<int32_t>(shape.n_heads);
  o.ints[2] = static_cast<int32_t>(shape.n_kv_heads);
  o.ints[3] = static_cast<int32_t>(shape.head_dim);
  if (windowed(n)) o.ints[4] = static_cast<int32_t>(shape.window);
  // Scales the logits by its square, so that stored keys stay unscaled.
  const float magnitude = rotation_of(n).magnitude;
  o.floats[0] = magnitude * magnitude / shape.attention_divisor;
  return a;
}

int32_t graph_builder::take_state(uint64_t elements) {
  return static_cast<int32_t>(std::exchange(state_, state_ + elements));
}

uint32_t queries(graph_builder& to, uint32_t n, uint32_t x) {
  const layer& l = to.layer_at(n);
  const uint32_t heads = to.shape().n_heads, kv_heads = to.shape().n_kv_heads;
  const std::size_t at = to.begin();
  const auto in = to.read_by(to.norm(x, l.attn_norm), {l.attn_q, l.attn_k, l.attn_v});
  const uint32_t q = to.linear(in, l.attn_q);
  const uint32_t k = to.linear(in, l.attn_k);
  const uint32_t v = to.linear(in, l.attn_v);
  const uint32_t rotated = to.rope(to.head_norm(q, l.attn_q_norm, heads), heads, n);
  to.keep(to.rope(to.head_norm(k, l.attn_k_norm, kv_heads), kv_heads, n), v);
  if (to.all_plainly_ternary({l.attn_q, l.attn_k, l.attn_v}))
    to.end(at, BITNET_OP_QKV_ROPE_KV, {x}, {rotated});
  else
    to.drop(at);
  return rotated;
}

uint32_t llama_attention(graph_builder& to, uint32_t n, uint32_t x) {
  const layer& l = to.layer_at(n);
  const uint32_t q = queries(to, n, x);
  const std::size_t at = to.begin();
  uint32_t a = to.attend(q, n);
  if (l.attn_sub_norm != no_weight) a = to.norm(a, l.attn_sub_norm);
  const uint32_t sum = to.add(x, to.linear_of(a, l.attn_output));
  // Other kernels would have the window.
  if (to.all_plainly_ternary({l.attn_output}) && !to.windowed(n))
    to.end(at, BITNET_OP_ATTN_OUT, {q, x}, {sum});
  else
    to.drop(at);
  return sum;
}

namespace {

uint32_t gate_op(activation gate) {
  switch (gate) {
    case activation::relu2:
      return BITNET_OP_RELU2;
    case activation::gelu:
      return BITNET_OP_GELU;
    case activation::silu:
      break;
  }
  return BITNET_OP_SILU;
}

}  // namespace

uint32_t gated_product(graph_builder& to, uint32_t n, uint32_t x) {
  const layer& l = to.layer_at(n);
  const auto in = to.read_by(to.norm(x, l.ffn_norm), {l.ffn_gate, l.ffn_up});
  const uint32_t gate = to.linear(in, l.ffn_gate);
  const uint32_t up = to.linear(in, l.ffn_up);
  const uint32_t g = to.product(to.through(gate_op(to.shape().gate), gate), up);
  return l.ffn_sub_norm == no_weight ? g : to.norm(g, l.ffn_sub_norm);
}

uint32_t llama_feed_forward(graph_builder& to, uint32_t n, uint32_t x) {
  const layer& l = to.layer_at(n);
  const activation gate = to.shape().gate;
  const std::size_t at = to.begin();
  const uint32_t sum = to.add(x, to.linear_of(gated_product(to, n, x), l.ffn_down));
  if (gate != activation::gelu && to.all_plainly_ternary({l.ffn_gate, l.ffn_up, l.ffn_down}))
    to.end(at, gate == activation::relu2 ? BITNET_OP_FFN_RELU2_GATED : BITNET_OP_FFN_SILU_GATED,
           {x}, {sum});
  else
    to.drop(at);
  return sum;
}

uint32_t llama_layer(graph_builder& to, uint32_t n, uint32_t x) {
  return llama_feed_forward(to, n, llama_attention(to, n, x));
}

uint32_t llama_lm_head(graph_builder& to, uint32_t x) {
  const described& m = to.about();
  const std::size_t at = to.begin();
  const uint32_t logits = to.linear_of(to.norm(to.asked_rows(x), m.output_norm), m.output);
  if (!to.ternary(m.output) && to.is_plain(m.output))
    to.end(at, BITNET_OP_LM_HEAD, {x}, {logits});
  else
    to.drop(at);
  return logits;
}

}  // namespace bitnet::model

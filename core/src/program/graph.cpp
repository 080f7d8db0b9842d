#include "program/graph.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/ascii.hpp"
#include "bitnet/abi/answers.h"

namespace bitnet::program {
namespace {

class builder {
 public:
  builder(const model::model& m, uint32_t n_context)
      : model_(m), shape_(m.shape()), rotation_(m.rotation_of(n_context)) {}

  graph build() && {
    uint32_t x = value(BITNET_DTYPE_F32, BITNET_DIM_TOKENS, shape_.n_embedding);
    emit(BITNET_OP_EMBED_GATHER, {}, {x}, {model_.token_embedding()});
    for (uint32_t i = 0; i < shape_.n_layers; ++i) {
      const model::layer& l = model_.layers()[i];
      x = attention_output(l, i, query(l, i, x), x);
      x = feed_forward(l, x);
    }
    out_.logits = head(x);
    return std::move(out_);
  }

 private:
  uint32_t value(uint32_t dtype, int64_t rows, int64_t columns) {
    out_.values.push_back({dtype, 0, {rows, columns}});
    return static_cast<uint32_t>(out_.values.size() - 1);
  }
  uint32_t activation(int64_t columns) {
    return value(BITNET_DTYPE_F32, BITNET_DIM_TOKENS, columns);
  }

  bitnet_op& emit(uint32_t op, const std::vector<uint32_t>& inputs,
                  const std::vector<uint32_t>& outputs, const std::vector<uint32_t>& weights = {}) {
    bitnet_op o{};
    o.op = op;
    const auto put = [](uint32_t(&to)[4], const std::vector<uint32_t>& from) {
      std::fill(std::begin(to), std::end(to), BITNET_NONE);
      std::copy(from.begin(), from.end(), std::begin(to));
    };
    put(o.inputs, inputs);
    put(o.outputs, outputs);
    put(o.weights, weights);
    out_.ops.push_back(o);
    return out_.ops.back();
  }

  // A composite stands before its body; begin reserves its place and end fills it in.
  std::size_t begin() {
    out_.ops.emplace_back();
    return out_.ops.size() - 1;
  }
  void end(std::size_t at, uint32_t op, const std::vector<uint32_t>& inputs,
           const std::vector<uint32_t>& outputs) {
    emit(op, inputs, outputs);
    out_.ops[at] = out_.ops.back();
    out_.ops.pop_back();
    out_.ops[at].body_count = static_cast<uint32_t>(out_.ops.size() - at - 1);
  }
  // No composite after all: its place goes away.
  void drop(std::size_t at) { out_.ops.erase(out_.ops.begin() + static_cast<std::ptrdiff_t>(at)); }

  [[nodiscard]] const model::weight& weight(uint32_t index) const {
    return model_.weights()[index];
  }
  [[nodiscard]] bool ternary(uint32_t index) const {
    return weight(index).format == BITNET_FORMAT_TERNARY2;
  }

  uint32_t norm(uint32_t x, uint32_t w) {
    const uint32_t y = value(BITNET_DTYPE_F32, out_.values[x].dims[0], out_.values[x].dims[1]);
    emit(BITNET_OP_RMS_NORM, {x}, {y}, {w}).floats[0] = shape_.rms_epsilon;
    return y;
  }

  struct quantised {
    uint32_t x = BITNET_NONE;  // the f32 input, for dense linears
    uint32_t q = BITNET_NONE, s = BITNET_NONE;
  };
  quantised quantise(uint32_t x, std::initializer_list<uint32_t> readers) {
    quantised out{x};
    if (std::any_of(readers.begin(), readers.end(), [&](uint32_t w) { return ternary(w); })) {
      const int64_t rows = out_.values[x].dims[0];
      out.q = value(BITNET_DTYPE_I8, rows, out_.values[x].dims[1]);
      out.s = value(BITNET_DTYPE_F32, rows, 1);
      emit(BITNET_OP_ACT_QUANT_I8, {x}, {out.q, out.s});
    }
    return out;
  }
  uint32_t linear(const quantised& in, uint32_t w) {
    const uint32_t y = value(BITNET_DTYPE_F32, out_.values[in.x].dims[0], weight(w).ne[1]);
    if (ternary(w))
      emit(BITNET_OP_LINEAR_TERNARY, {in.q, in.s}, {y}, {w});
    else
      emit(BITNET_OP_LINEAR_DENSE, {in.x}, {y}, {w});
    return y;
  }
  uint32_t rope(uint32_t x, uint32_t heads) {
    const uint32_t y = activation(out_.values[x].dims[1]);
    std::vector<uint32_t> weights;
    if (rotation_.divisors != model::no_weight) weights.push_back(rotation_.divisors);
    bitnet_op& o = emit(BITNET_OP_ROPE, {x}, {y}, weights);
    o.ints[0] = static_cast<int32_t>(heads);
    o.ints[1] = static_cast<int32_t>(shape_.head_dim);
    o.ints[2] = static_cast<int32_t>(shape_.rope_dims);
    o.ints[3] = shape_.rope_neox ? BITNET_ROPE_NEOX : BITNET_ROPE_INTERLEAVED;
    o.floats[0] = rotation_.base;
    o.floats[1] = rotation_.scale;
    return y;
  }

  uint32_t query(const model::layer& l, uint32_t layer, uint32_t x) {
    const std::size_t at = begin();
    const uint32_t h = norm(x, l.attn_norm);
    const quantised in = quantise(h, {l.attn_q, l.attn_k, l.attn_v});
    const uint32_t q = linear(in, l.attn_q);
    const uint32_t k = linear(in, l.attn_k);
    const uint32_t v = linear(in, l.attn_v);
    const uint32_t rotated = rope(q, shape_.n_heads);
    const uint32_t rotated_k = rope(k, shape_.n_kv_heads);
    emit(BITNET_OP_KV_WRITE, {rotated_k, v}, {}).ints[0] = static_cast<int32_t>(layer);
    if (ternary(l.attn_q) && ternary(l.attn_k) && ternary(l.attn_v))
      end(at, BITNET_OP_QKV_ROPE_KV, {x}, {rotated});
    else
      drop(at);
    return rotated;
  }

  uint32_t attention_output(const model::layer& l, uint32_t layer, uint32_t q, uint32_t x) {
    const std::size_t at = begin();
    uint32_t a = activation(int64_t{shape_.n_heads} * shape_.head_dim);
    bitnet_op& o = emit(BITNET_OP_ATTN_PAGED, {q}, {a});
    o.ints[0] = static_cast<int32_t>(layer);
    o.ints[1] = static_cast<int32_t>(shape_.n_heads);
    o.ints[2] = static_cast<int32_t>(shape_.n_kv_heads);
    o.ints[3] = static_cast<int32_t>(shape_.head_dim);
    // Larger queries and keys are larger logits; the stored keys stay as they are.
    o.floats[0] =
        rotation_.magnitude * rotation_.magnitude / std::sqrt(static_cast<float>(shape_.head_dim));
    if (l.attn_sub_norm != model::no_weight) a = norm(a, l.attn_sub_norm);
    const uint32_t y = linear(quantise(a, {l.attn_output}), l.attn_output);
    const uint32_t sum = activation(shape_.n_embedding);
    emit(BITNET_OP_ADD, {x, y}, {sum});
    if (ternary(l.attn_output))
      end(at, BITNET_OP_ATTN_OUT, {q, x}, {sum});
    else
      drop(at);
    return sum;
  }

  uint32_t feed_forward(const model::layer& l, uint32_t x) {
    const std::size_t at = begin();
    const uint32_t h = norm(x, l.ffn_norm);
    const quantised in = quantise(h, {l.ffn_gate, l.ffn_up});
    const uint32_t gate = linear(in, l.ffn_gate);
    const uint32_t up = linear(in, l.ffn_up);
    const bool relu2 = shape_.gate == model::activation::relu2;
    const uint32_t active = activation(shape_.n_feed_forward);
    emit(relu2 ? BITNET_OP_RELU2 : BITNET_OP_SILU, {gate}, {active});
    uint32_t g = activation(shape_.n_feed_forward);
    emit(BITNET_OP_MUL, {active, up}, {g});
    if (l.ffn_sub_norm != model::no_weight) g = norm(g, l.ffn_sub_norm);
    const uint32_t y = linear(quantise(g, {l.ffn_down}), l.ffn_down);
    const uint32_t sum = activation(shape_.n_embedding);
    emit(BITNET_OP_ADD, {x, y}, {sum});
    if (ternary(l.ffn_gate) && ternary(l.ffn_up) && ternary(l.ffn_down))
      end(at, relu2 ? BITNET_OP_FFN_RELU2_GATED : BITNET_OP_FFN_SILU_GATED, {x}, {sum});
    else
      drop(at);
    return sum;
  }

  uint32_t head(uint32_t x) {
    const std::size_t at = begin();
    const uint32_t rows = value(BITNET_DTYPE_F32, BITNET_DIM_OUTPUTS, shape_.n_embedding);
    emit(BITNET_OP_GATHER_ROWS, {x}, {rows});
    const uint32_t h = norm(rows, model_.output_norm());
    const uint32_t logits = linear(quantise(h, {model_.output()}), model_.output());
    if (ternary(model_.output()))
      drop(at);
    else
      end(at, BITNET_OP_LM_HEAD, {x}, {logits});
    return logits;
  }

  const model::model& model_;
  const model::hyperparameters& shape_;
  const model::rotation rotation_;
  graph out_;
};

}  // namespace

bitnet_graph graph::view() const {
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

graph describe(const model::model& m, uint32_t n_context) {
  return builder(m, n_context).build();
}

std::string op_name(uint32_t op) {
  switch (op) {
#define BITNET_CASE(name, id, inputs, weights, outputs) \
  case id:                                              \
    return lower_ascii(#name);
    BITNET_OP_LIST(BITNET_CASE)
#undef BITNET_CASE
    default:
      return fmt::format("op {}", op);
  }
}

std::string format_name(uint32_t format) {
  switch (format) {
    case BITNET_FORMAT_NONE:
      return "none";
    case BITNET_FORMAT_F32:
      return "f32";
    case BITNET_FORMAT_F16:
      return "f16";
    case BITNET_FORMAT_BF16:
      return "bf16";
    case BITNET_FORMAT_Q8_0:
      return "q8_0";
    case BITNET_FORMAT_Q4_0:
      return "q4_0";
    case BITNET_FORMAT_Q4_K:
      return "q4_k";
    case BITNET_FORMAT_Q6_K:
      return "q6_k";
    case BITNET_FORMAT_TERNARY2:
      return "ternary2";
    default:
      return fmt::format("format {}", format);
  }
}

result<void> check_support(const bitnet_backend_v0& table, bitnet_device* device, const graph& g,
                           const model::model& m) {
  std::vector<uint32_t> formats;
  formats.reserve(g.ops.size());
  for (const bitnet_op& o : g.ops)
    formats.push_back(o.weights[0] == BITNET_NONE ? uint32_t{BITNET_FORMAT_NONE}
                                                  : m.weights()[o.weights[0]].format);
  return check_support(table, device, g, formats);
}

result<void> check_support(const bitnet_backend_v0& table, bitnet_device* device, const graph& g,
                           const std::vector<uint32_t>& formats) {
  std::vector<uint32_t> levels(g.ops.size(), BITNET_LEVEL_NONE);
  bitnet_error err{};
  err.struct_size = sizeof err;
  const bitnet_status status =
      table.op_query(device, g.ops.data(), sizeof(bitnet_op), formats.data(),
                     static_cast<uint32_t>(g.ops.size()), levels.data(), &err);
  if (status != BITNET_OK) {
    const std::string reason(err.message, strnlen(err.message, sizeof err.message));
    return fail(status,
                fmt::format("asking for its ops: {}", reason.empty() ? "no reason given" : reason));
  }
  if (const char* wrong = bitnet_wrong_levels(levels.data(), static_cast<uint32_t>(levels.size())))
    return fail(BITNET_REJECTED,
                fmt::format("op_query() {}: the backend breaks its contract; request another "
                            "device, and report it to the backend's author",
                            wrong));
  for (std::size_t i = 0; i < g.ops.size(); ++i) {
    if (g.ops[i].op >= BITNET_OP_FIRST_COMPOSITE || levels[i] != BITNET_LEVEL_NONE) continue;
    return fail(BITNET_UNSUPPORTED,
                fmt::format("it cannot compute {}{}, which is needed; choose another device",
                            op_name(g.ops[i].op),
                            formats[i] == BITNET_FORMAT_NONE
                                ? std::string()
                                : fmt::format(" on {} weights", format_name(formats[i]))));
  }
  return {};
}

}  // namespace bitnet::program

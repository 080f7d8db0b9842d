#include "fusion.hpp"

#include <algorithm>

#include "gpu-common/names.hpp"

namespace bitnet::gpu {
namespace {

class finder {
 public:
  finder(const sdk::graph& g, const weights& all, const opened& device)
      : graph_(g), weights_(all), device_(device), tiles_(tiles_for(device.about())) {}

  fusions find() && {
    found_.writer.assign(graph_.values.size(), no_op);
    readers_.assign(graph_.values.size(), 0);
    for (uint64_t i = 0; i < graph_.ops.size(); ++i) {
      const bitnet_op& op = graph_.ops[i];
      if (sdk::is_composite(op)) continue;
      for (const uint32_t v : op.outputs)
        if (v != BITNET_NONE) found_.writer[v] = i;
      for (const uint32_t v : op.inputs)
        if (v != BITNET_NONE) ++readers_[v];
    }
    for (uint64_t v = 0; v < graph_.values.size(); ++v)
      if (graph_.external[v]) ++readers_[v];  // the reader is outside
    found_.of.resize(graph_.ops.size());
    for (uint64_t i = 0; i < graph_.ops.size(); ++i) find_fusion(i);
    for (uint64_t i = 0; i < graph_.ops.size(); ++i)
      if (graph_.ops[i].op == BITNET_OP_ACT_QUANT_I8) found_.of[i].repeated = is_repeated(i);
    return std::move(found_);
  }

 private:
  // The op that writes `value`, if it is an `op` and the value has a single reader; else no_op.
  uint64_t only_source(uint32_t value, uint32_t op) const {
    const uint64_t at = found_.writer[value];
    return at != no_op && readers_[value] == 1 && graph_.ops[at].op == op ? at : no_op;
  }

  void find_fusion(uint64_t i) {
    const bitnet_op& op = graph_.ops[i];
    fusion& f = found_.of[i];
    if (op.op == BITNET_OP_ACT_QUANT_I8) {
      find_quant_fusion(op, f);
    } else if (op.op == BITNET_OP_ACT_QUANT_I8_GROUPED && device_.capabilities().fuses_groups) {
      find_groups_fusion(op, f);
    } else if (op.op == BITNET_OP_ADD && op.inputs[0] != op.inputs[1]) {
      // If both sides of the sum are products, one of them stays separate.
      for (const uint32_t product : {BITNET_OP_LINEAR_TERNARY, BITNET_OP_LINEAR_TERNARY_GROUPED})
        for (int side = 0; side < 2 && f.linear == no_op; ++side)
          if (!device_.is_disabled(linear_add_name(product, device_.name)))
            f.linear = only_source(op.inputs[side], product);
      if (f.linear != no_op) found_.of[f.linear].absorbed = true;
    } else if (op.op == BITNET_OP_KV_WRITE && op.inputs[0] != op.inputs[1] &&
               !device_.is_disabled(rope_kv_name(device_.name))) {
      f.rope = only_source(op.inputs[0], BITNET_OP_ROPE);
      if (f.rope != no_op) found_.of[f.rope].absorbed = true;
    } else if (op.op == BITNET_OP_ATTN_PAGED && device_.capabilities().attention_of_token &&
               !device_.is_disabled(attention_parts_name(device_.name))) {
      find_token_attention(i, f);
    }
  }

  // The KV_WRITE of the attention's layer before it, if no other attention has read that layer
  // since.
  uint64_t kv_write_before(uint64_t attention) const {
    for (uint64_t i = attention; i-- != 0;) {
      const bitnet_op& op = graph_.ops[i];
      const bool of_layer = (op.op == BITNET_OP_KV_WRITE || op.op == BITNET_OP_ATTN_PAGED) &&
                            op.ints[0] == graph_.ops[attention].ints[0];
      if (of_layer) return op.op == BITNET_OP_KV_WRITE ? i : no_op;
    }
    return no_op;
  }

  // One kernel computes a single token's attention and the ops that make its inputs, if queries and
  // keys are rotated by the same angles and a group has all heads of a KV head. Norms of heads are
  // among those ops if both queries and keys have them.
  void find_token_attention(uint64_t at, fusion& f) {
    const bitnet_op& op = graph_.ops[at];
    const uint64_t write = kv_write_before(at);
    const uint64_t of_q = only_source(op.inputs[0], BITNET_OP_ROPE);
    if (write == no_op || of_q == no_op || found_.of[write].rope == no_op) return;
    const bitnet_op &q = graph_.ops[of_q], &k = graph_.ops[found_.of[write].rope];
    const auto heads = static_cast<uint64_t>(op.ints[1]), kv = static_cast<uint64_t>(op.ints[2]);
    const auto head_dim = static_cast<uint64_t>(op.ints[3]);
    const bool same_rotations = q.floats[0] == k.floats[0] && q.floats[1] == k.floats[1] &&
                                q.ints[2] == k.ints[2] && q.ints[3] == k.ints[3] &&
                                q.weights[0] == k.weights[0];
    const bool same_heads = q.ints[0] == op.ints[1] && k.ints[0] == op.ints[2] &&
                            q.ints[1] == op.ints[3] && k.ints[1] == op.ints[3];
    if (!same_rotations || !same_heads ||
        heads / kv > tile_rows_for(device_.capabilities(), heads / kv, head_dim))
      return;
    const uint64_t norm_of_q = norm_of_heads(q), norm_of_k = norm_of_heads(k);
    const bool norms = norm_of_q != no_op && norm_of_k != no_op &&
                       !device_.is_disabled(attn_token_name(true, device_.name));
    if (!norms && device_.is_disabled(attn_token_name(false, device_.name))) return;
    f.kv_write = write;
    f.rope_of_q = of_q;
    found_.of[write].in_attention = found_.of[of_q].in_attention = true;
    if (!norms) return;
    f.norm_of_q = norm_of_q;
    f.norm_of_k = norm_of_k;
    found_.of[norm_of_q].in_attention = found_.of[norm_of_k].in_attention = true;
  }

  // The norm of each of the heads that `rope` rotates.
  uint64_t norm_of_heads(const bitnet_op& rope) const {
    const uint64_t norm = only_source(rope.inputs[0], BITNET_OP_RMS_NORM_HEADS);
    return norm != no_op && graph_.ops[norm].ints[0] == rope.ints[0] ? norm : no_op;
  }

  // If x is an activation times something else, and the kernel name_of(activation) is not disabled,
  // that kernel computes both.
  template <class NameOf>
  bool find_gate(uint32_t x, fusion& f, NameOf name_of) {
    const uint64_t mul = only_source(x, BITNET_OP_MUL);
    if (mul == no_op) return false;
    for (int side = 0; side < 2; ++side)
      for (const uint32_t kind : {BITNET_OP_RELU2, BITNET_OP_SILU, BITNET_OP_GELU}) {
        const uint64_t activation = only_source(graph_.ops[mul].inputs[side], kind);
        if (activation == no_op || device_.is_disabled(name_of(kind))) continue;
        f.mul = mul;
        f.activation = activation;
        found_.of[mul].absorbed = found_.of[activation].absorbed = true;
        return true;
      }
    return false;
  }

  void find_quant_fusion(const bitnet_op& op, fusion& f) {
    const uint64_t norm = only_source(op.inputs[0], BITNET_OP_RMS_NORM);
    const uint32_t x = norm == no_op ? op.inputs[0] : graph_.ops[norm].inputs[0];
    if (find_gate(x, f, [&](uint32_t kind) {
          return glu_quant_name(kind, norm != no_op, device_.name);
        })) {
      f.norm = norm;
      if (norm != no_op) found_.of[norm].absorbed = true;
      return;
    }
    if (norm == no_op || device_.is_disabled(norm_quant_name(device_.name))) return;
    f.norm = norm;
    found_.of[norm].absorbed = true;
  }

  // The same for factors of groups: no kernel has both an activation and a norm.
  void find_groups_fusion(const bitnet_op& op, fusion& f) {
    if (find_gate(op.inputs[0], f,
                  [&](uint32_t kind) { return glu_quant_groups_name(kind, device_.name); }))
      return;
    const uint64_t norm = only_source(op.inputs[0], BITNET_OP_RMS_NORM);
    if (norm == no_op || device_.is_disabled(norm_quant_groups_name(device_.name))) return;
    f.norm = norm;
    found_.of[norm].absorbed = true;
  }

  // True if the products that read the result of ACT_QUANT_I8 `at` should quantise by themselves.
  bool is_repeated(uint64_t at) const {
    const uint32_t q = graph_.ops[at].outputs[0], s = graph_.ops[at].outputs[1];
    const bool norm = found_.of[at].norm != no_op;
    if (found_.of[at].mul != no_op) return false;
    uint64_t readers = 0;
    for (const bitnet_op& op : graph_.ops) {
      if (op.op != BITNET_OP_LINEAR_TERNARY || op.inputs[0] != q || op.inputs[1] != s) continue;
      ++readers;
      for (const bool add : {false, true})
        if (device_.is_disabled(bit_linear_name(norm, add, device_.name))) return false;
      const sdk::weight& w = weights_.at(op.weights[0]).view;
      if (w.scale_group != 0 || !pays_to_repeat(w.m, w.k)) return false;
    }
    return readers != 0 && readers == readers_[q] && readers == readers_[s];
  }

  bool pays_to_repeat(uint64_t m, uint64_t k) const {
    const capabilities& can = device_.capabilities();
    // The row, its scale, and four words for each thread's share of sums.
    if (4 * (i8_row_words(k) + 1 + uint64_t{4} * tiles_.group) > can.shared_memory_bytes)
      return false;
    // A command costs a few thousand instructions; a thread executes 30 for each of its elements.
    constexpr uint64_t most_of_a_thread = 64;
    const uint32_t most_repeated = device_.quirks().max_repeated;
    if (most_repeated == 0) return k <= most_of_a_thread * tiles_.group;
    const uint64_t rows = uint64_t{tiles_.group} / tiles_.lanes * tiles_.rows_each;
    return std::min<uint64_t>((m + rows - 1) / rows, can.max_groups) * k <= most_repeated;
  }

  const sdk::graph& graph_;
  const weights& weights_;
  const opened& device_;
  const tiles tiles_;
  fusions found_;
  std::vector<uint64_t> readers_;  // by value
};

}  // namespace

fusions find_fusions(const sdk::graph& g, const weights& all, const opened& device) {
  return finder(g, all, device).find();
}

}  // namespace bitnet::gpu

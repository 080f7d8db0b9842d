#include "plan.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>
#include <utility>

#include "names.hpp"

namespace bitnet::gpu {
namespace {

using sdk::failed;
using source = operand::source;

template <class Params>
std::vector<uint32_t> words_of(const Params& params) {
  static_assert(sizeof params % 4 == 0 && sizeof params <= uint64_t{4} * max_params);
  std::vector<uint32_t> words(sizeof params / 4);
  std::memcpy(words.data(), &params, sizeof params);
  return words;
}

operand reads(uint32_t value) {
  return {source::value, value, false};
}
operand writes(uint32_t value) {
  return {source::value, value, true};
}

constexpr uint64_t none = UINT64_MAX;
constexpr uint32_t most_tokens = 4;  // that a group of a linear kernel takes together

// What becomes of an op.
struct fusion {
  bool absorbed = false;  // a later op's kernel computes it
  uint64_t norm = none;   // ACT_QUANT_I8: the RMS_NORM before it
  uint64_t mul = none;    // ACT_QUANT_I8: the MUL before that
  uint64_t activation = none;
  uint64_t linear = none;  // ADD: the LINEAR_TERNARY before it
  uint64_t rope = none;    // KV_WRITE: the ROPE of its keys
  bool repeated = false;   // ACT_QUANT_I8: in steps of one row, its readers do it themselves
  bool counted = false;    // and one of them has the norm's bytes in its own
};

class planner {
 public:
  planner(const sdk::graph& g, const weight_set& weights, const opened& device,
          const sdk::reporter& report, plan& out)
      : graph_(g),
        weights_(weights),
        device_(device),
        report_(report),
        out_(out),
        tiles_(tiles_for(device.about())) {}

  bitnet_status make() {
    writer_.assign(graph_.values.size(), none);
    readers_.assign(graph_.values.size(), 0);
    for (uint64_t i = 0; i < graph_.ops.size(); ++i) {
      const bitnet_op& op = graph_.ops[i];
      if (sdk::is_composite(op.op)) continue;
      for (const uint32_t v : op.outputs)
        if (v != BITNET_NONE) writer_[v] = i;
      for (const uint32_t v : op.inputs)
        if (v != BITNET_NONE) ++readers_[v];
    }
    ++readers_[graph_.logits];
    fusions_.resize(graph_.ops.size());
    for (uint64_t i = 0; i < graph_.ops.size(); ++i) find_fusion(i);
    for (uint64_t i = 0; i < graph_.ops.size(); ++i)
      if (graph_.ops[i].op == BITNET_OP_ACT_QUANT_I8) fusions_[i].repeated = is_repeated(i);
    for (uint64_t i = 0; i < graph_.ops.size(); ++i) {
      const bitnet_op& op = graph_.ops[i];
      if (sdk::is_composite(op.op) || fusions_[i].absorbed) continue;
      if (bitnet_status s = add(op, fusions_[i]); failed(s)) return s;
    }
    return BITNET_OK;
  }

 private:
  // The op that writes `value`, if it is an `op` and nobody else reads the value.
  uint64_t only_source(uint32_t value, uint32_t op) const {
    const uint64_t at = writer_[value];
    return at != none && readers_[value] == 1 && graph_.ops[at].op == op ? at : none;
  }

  void find_fusion(uint64_t i) {
    const bitnet_op& op = graph_.ops[i];
    fusion& f = fusions_[i];
    if (op.op == BITNET_OP_ACT_QUANT_I8) {
      find_quant_fusion(op, f);
    } else if (op.op == BITNET_OP_ADD && !device_.is_disabled(linear_add_name(device_.name))) {
      for (int side = 0; side < 2 && f.linear == none; ++side)
        if (op.inputs[0] != op.inputs[1])
          f.linear = only_source(op.inputs[side], BITNET_OP_LINEAR_TERNARY);
      // Two products of one sum: the first of them stays on its own.
      if (f.linear != none) fusions_[f.linear].absorbed = true;
    } else if (op.op == BITNET_OP_KV_WRITE && op.inputs[0] != op.inputs[1] &&
               !device_.is_disabled(rope_kv_name(device_.name))) {
      f.rope = only_source(op.inputs[0], BITNET_OP_ROPE);
      if (f.rope != none) fusions_[f.rope].absorbed = true;
    }
  }

  void find_quant_fusion(const bitnet_op& op, fusion& f) {
    const uint64_t norm = only_source(op.inputs[0], BITNET_OP_RMS_NORM);
    const uint32_t x = norm == none ? op.inputs[0] : graph_.ops[norm].inputs[0];
    const uint64_t mul = only_source(x, BITNET_OP_MUL);
    if (mul != none) {
      for (int side = 0; side < 2; ++side) {
        for (const uint32_t kind : {BITNET_OP_RELU2, BITNET_OP_SILU}) {
          const uint64_t activation = only_source(graph_.ops[mul].inputs[side], kind);
          if (activation == none ||
              device_.is_disabled(glu_quant_name(kind, norm != none, device_.name)))
            continue;
          f.norm = norm;
          f.mul = mul;
          f.activation = activation;
          fusions_[mul].absorbed = fusions_[activation].absorbed = true;
          if (norm != none) fusions_[norm].absorbed = true;
          return;
        }
      }
    }
    if (norm == none || device_.is_disabled(norm_quant_name(device_.name))) return;
    f.norm = norm;
    fusions_[norm].absorbed = true;
  }

  // Whether the products that read what ACT_QUANT_I8 `at` writes had better quantise themselves.
  bool is_repeated(uint64_t at) const {
    const uint32_t q = graph_.ops[at].outputs[0], s = graph_.ops[at].outputs[1];
    const bool norm = fusions_[at].norm != none;
    if (fusions_[at].mul != none) return false;
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
    const facts& about = device_.about();
    // The row, its scale, and four words for each thread's share of sums.
    if (4 * (i8_row_words(k) + 1 + uint64_t{4} * tiles_.group) > about.shared_memory_bytes)
      return false;
    // A command more is a few thousand instructions; a thread has 30 for each of its elements.
    constexpr uint64_t most_of_a_thread = 64;
    if (about.max_repeated == 0) return k <= most_of_a_thread * tiles_.group;
    const uint64_t rows = uint64_t{tiles_.group} / tiles_.lanes * tiles_.rows_each;
    return std::min<uint64_t>((m + rows - 1) / rows, about.max_groups) * k <= about.max_repeated;
  }

  uint64_t width(uint32_t value) const {
    return static_cast<uint64_t>(graph_.values[value].dims[1]);
  }
  uint32_t width32(uint32_t value) const { return static_cast<uint32_t>(width(value)); }
  uint32_t rows_of(uint32_t value) const {
    return graph_.values[value].dims[0] == BITNET_DIM_OUTPUTS ? rows_are_outputs : rows_are_tokens;
  }

  node start(kernel_id id, const bitnet_op& op, uint32_t shape, gpu::grid grid, uint64_t columns) {
    node n;
    n.spec.id = id;
    n.spec.constants[0] = tiles_.group;
    n.op = op.op;
    n.grid = grid;
    n.columns = columns;
    n.rows = rows_of(shape);
    if (op.weights[0] != BITNET_NONE) n.weight = &weights_.at(op.weights[0]);
    n.name =
        kernel_name(op.op, n.weight ? n.weight->view.format : BITNET_FORMAT_NONE, device_.name);
    if (n.weight) n.weight_bytes = n.weight->device_bytes();
    return n;
  }

  bitnet_status add(const bitnet_op& op, const fusion& f) {
    // Fixed numbers of rows cannot come from any op, as every graph starts with EMBED_GATHER.
    for (const uint32_t v : op.outputs)
      if (v != BITNET_NONE && graph_.values[v].dims[0] > 0)
        return report_.fail(BITNET_UNSUPPORTED, "value %u has a fixed number of rows", v);
    const uint32_t* in = op.inputs;
    const uint32_t* out = op.outputs;
    switch (op.op) {
      case BITNET_OP_EMBED_GATHER:
        return embed_gather(op);
      case BITNET_OP_RMS_NORM: {
        node n = start(kernel_id::rms_norm, op, out[0], grid::rows, 1);
        n.operands = {reads(in[0]), {source::vector}, writes(out[0])};
        n.params = words_of(rms_norm_params{n.rows, width32(in[0]), op.floats[0]});
        return push(std::move(n));
      }
      case BITNET_OP_ACT_QUANT_I8:
        return act_quant(op, f);
      case BITNET_OP_LINEAR_TERNARY:
        return linear_ternary(op, BITNET_NONE, out[0]);
      case BITNET_OP_LINEAR_DENSE:
        return linear_dense(op);
      case BITNET_OP_ROPE:
        return rope(op);
      case BITNET_OP_KV_WRITE:
        return kv_write(op, f);
      case BITNET_OP_ATTN_PAGED:
        return attention(op);
      case BITNET_OP_GATHER_ROWS: {
        node n = start(kernel_id::gather_rows, op, out[0], grid::threads, width(out[0]));
        n.operands = {{source::output_rows}, reads(in[0]), writes(out[0])};
        n.params = words_of(gather_rows_params{n.rows, width32(out[0])});
        return push(std::move(n));
      }
      case BITNET_OP_ADD:
        if (f.linear != none) {
          const bitnet_op& linear = graph_.ops[f.linear];
          const uint32_t other = in[0] == linear.outputs[0] ? in[1] : in[0];
          return linear_ternary(linear, other, out[0]);
        }
        return elementwise(op);
      default:  // MUL, RELU2, SILU: the graph has been checked
        return elementwise(op);
    }
  }

  bitnet_status push(node n) {
    out_.nodes.push_back(std::move(n));
    return BITNET_OK;
  }

  bitnet_status embed_gather(const bitnet_op& op) {
    node n = start(kernel_id::embed_gather, op, op.outputs[0], grid::threads, width(op.outputs[0]));
    n.spec.constants[1] = n.weight->view.format;
    n.weight_bytes = 4 * n.weight->words;
    // Without scales the kernel reads none.
    const source scales = n.weight->scales.memory ? source::scales : source::tokens;
    n.operands = {{source::tokens}, {source::matrix}, {scales}, writes(op.outputs[0])};
    n.params = words_of(embed_gather_params{n.rows, width32(op.outputs[0]),
                                            static_cast<uint32_t>(n.weight->words), 0, 0,
                                            static_cast<uint32_t>(n.weight->view.scale_group)});
    n.part_param = 3;
    return push(std::move(n));
  }

  bitnet_status act_quant(const bitnet_op& op, const fusion& f) {
    const uint32_t* out = op.outputs;
    const uint32_t k = width32(op.inputs[0]);
    const bitnet_op* norm = f.norm == none ? nullptr : &graph_.ops[f.norm];
    if (f.mul != none) {
      const bitnet_op& mul = graph_.ops[f.mul];
      const bitnet_op& activation = graph_.ops[f.activation];
      const uint32_t up = mul.inputs[0] == activation.outputs[0] ? mul.inputs[1] : mul.inputs[0];
      node n = start(kernel_id::glu_quant, norm ? *norm : op, out[0], grid::rows, 1);
      n.op = op.op;
      n.spec.constants[1] = activation.op;
      n.spec.constants[2] = norm ? 1 : 0;
      n.name = glu_quant_name(activation.op, norm != nullptr, device_.name);
      const operand weight = norm ? operand{source::vector} : reads(up);
      n.operands = {reads(activation.inputs[0]), reads(up),      weight,
                    writes(mul.outputs[0]),      writes(out[0]), writes(out[1])};
      n.params = words_of(glu_quant_params{n.rows, k, norm ? norm->floats[0] : 0.0f});
      return push(std::move(n));
    }
    if (norm) {
      node n = start(kernel_id::norm_quant, *norm, out[0], grid::rows, 1);
      n.op = op.op;
      if (f.repeated) n.when = steps::of_more_rows;
      n.name = norm_quant_name(device_.name);
      n.operands = {reads(norm->inputs[0]), {source::vector}, writes(out[0]), writes(out[1])};
      n.params = words_of(norm_quant_params{n.rows, k, norm->floats[0]});
      return push(std::move(n));
    }
    node n = start(kernel_id::act_quant, op, out[0], grid::rows, 1);
    if (f.repeated) n.when = steps::of_more_rows;
    n.operands = {reads(op.inputs[0]), writes(out[0]), writes(out[1])};
    n.params = words_of(act_quant_params{n.rows, k});
    return push(std::move(n));
  }

  bitnet_status linear_ternary(const bitnet_op& op, uint32_t residual, uint32_t result) {
    const uint64_t quant = writer_[op.inputs[0]];
    const bool repeats = quant != none && fusions_[quant].repeated;
    if (repeats)
      if (bitnet_status s = bit_linear(op, quant, residual, result); failed(s)) return s;
    node n = start(kernel_id::linear_ternary, op, result, grid::matrix, 0);
    if (repeats) n.when = steps::of_more_rows;
    const sdk::weight& w = n.weight->view;
    n.spec.constants[1] = w.scale_group != 0 ? 1 : tiles_.lanes;
    n.spec.constants[3] = tiles_.rows_each;
    if (residual != BITNET_NONE) n.name = linear_add_name(device_.name);
    n.operands = {reads(op.inputs[0]),
                  reads(op.inputs[1]),
                  {source::matrix},
                  {source::scales},
                  reads(residual == BITNET_NONE ? op.inputs[1] : residual),
                  writes(result)};
    n.params = words_of(linear_ternary_params{
        n.rows, static_cast<uint32_t>(w.k), static_cast<uint32_t>(w.m),
        static_cast<uint32_t>(n.weight->words), 0, 0, static_cast<uint32_t>(w.scale_group),
        residual == BITNET_NONE ? 0u : 1u});
    n.part_param = 4;
    return push(std::move(n));
  }

  // The product `op` with the ACT_QUANT_I8 `quant` before it, and the RMS_NORM before that.
  bitnet_status bit_linear(const bitnet_op& op, uint64_t quant, uint32_t residual,
                           uint32_t result) {
    node n = start(kernel_id::bit_linear, op, result, grid::matrix, 0);
    const sdk::weight& w = n.weight->view;
    const uint64_t at = fusions_[quant].norm;
    const bitnet_op* norm = at == none ? nullptr : &graph_.ops[at];
    const uint32_t x = norm ? norm->inputs[0] : graph_.ops[quant].inputs[0];
    n.op = BITNET_OP_BIT_LINEAR;
    n.when = steps::of_one_row;
    n.spec.constants[1] = tiles_.lanes;
    n.spec.constants[2] = norm ? 1 : 0;
    n.spec.constants[3] = tiles_.rows_each;
    n.spec.constants[4] = static_cast<uint32_t>(i8_row_words(w.k));
    n.name = bit_linear_name(norm != nullptr, residual != BITNET_NONE, device_.name);
    if (norm) n.vector = &weights_.at(norm->weights[0]);
    // The first reads the norm from memory, the others find it nearer.
    if (norm && !std::exchange(fusions_[quant].counted, true))
      n.weight_bytes += n.vector->device_bytes();
    const operand weight = norm ? operand{source::vector} : reads(x);
    n.operands = {reads(x),
                  weight,
                  {source::matrix},
                  {source::scales},
                  reads(residual == BITNET_NONE ? x : residual),
                  writes(result)};
    n.params = words_of(
        bit_linear_params{n.rows, static_cast<uint32_t>(w.k), static_cast<uint32_t>(w.m),
                          static_cast<uint32_t>(n.weight->words), 0, 0,
                          residual == BITNET_NONE ? 0u : 1u, norm ? norm->floats[0] : 0.0f});
    n.part_param = 4;
    return push(std::move(n));
  }

  bitnet_status linear_dense(const bitnet_op& op) {
    node n = start(kernel_id::linear_dense, op, op.outputs[0], grid::matrix, 0);
    const sdk::weight& w = n.weight->view;
    n.spec.constants[1] = tiles_.lanes;
    n.spec.constants[3] = w.format;
    n.operands = {reads(op.inputs[0]), {source::matrix}, writes(op.outputs[0])};
    n.params =
        words_of(linear_dense_params{n.rows, static_cast<uint32_t>(w.k), static_cast<uint32_t>(w.m),
                                     static_cast<uint32_t>(n.weight->words), 0, 0});
    n.part_param = 4;
    return push(std::move(n));
  }

  bitnet_status rope(const bitnet_op& op) {
    const auto heads = static_cast<uint32_t>(op.ints[0]);
    const auto head_dim = static_cast<uint32_t>(op.ints[1]);
    const uint32_t pairs = static_cast<uint32_t>(op.ints[2]) / 2;
    node n = start(kernel_id::rope, op, op.outputs[0], grid::threads,
                   uint64_t{heads} * (head_dim - pairs));
    const uint32_t table = turns_of(op, pairs);
    n.operands = {reads(op.inputs[0]), {source::turns, table}, writes(op.outputs[0])};
    n.params = words_of(
        rope_params{n.rows, heads, head_dim, pairs, op.ints[3] == BITNET_ROPE_NEOX ? 1u : 0u});
    n.weight = nullptr;  // the host reads it
    return push(std::move(n));
  }

  uint32_t turns_of(const bitnet_op& op, uint32_t pairs) {
    turn_table t{op.floats[0],
                 op.floats[1],
                 pairs,
                 op.weights[0] == BITNET_NONE ? nullptr : &weights_.at(op.weights[0]),
                 {}};
    for (uint32_t i = 0; i < out_.turns.size(); ++i) {
      const turn_table& known = out_.turns[i];
      if (known.theta == t.theta && known.factor == t.factor && known.pairs == pairs &&
          known.divisors == t.divisors)
        return i;
    }
    for (uint32_t i = 0; i < pairs; ++i) {
      const double f = double{t.factor} * std::pow(double{t.theta}, -2.0 * i / (2.0 * pairs));
      t.frequencies.push_back(t.divisors ? f / double{t.divisors->host[i]} : f);
    }
    out_.turns.push_back(std::move(t));
    return static_cast<uint32_t>(out_.turns.size() - 1);
  }

  bitnet_status kv_write(const bitnet_op& op, const fusion& f) {
    const auto layer = static_cast<uint32_t>(op.ints[0]);
    const bitnet_op* rope = f.rope == none ? nullptr : &graph_.ops[f.rope];
    const uint32_t k = rope ? rope->inputs[0] : op.inputs[0];
    const uint32_t pairs = rope ? static_cast<uint32_t>(rope->ints[2]) / 2 : 0;
    node n = start(kernel_id::kv_write, op, op.inputs[0], grid::threads, width(op.inputs[0]));
    n.columns *= 2;  // as many as words of f32 keys and values: the most there can be
    n.spec.constants[3] = rope ? 1 : 0;
    if (rope) n.name = rope_kv_name(device_.name);
    n.operands = {{source::slots},
                  reads(k),
                  reads(op.inputs[1]),
                  rope ? operand{source::turns, turns_of(*rope, pairs)} : reads(k),
                  {source::keys, layer, true},
                  {source::values, layer, true}};
    const bool neox = rope && rope->ints[3] == BITNET_ROPE_NEOX;
    // What is 0 here is the pool's.
    n.params = words_of(kv_write_params{n.rows, 0, 0, 0, pairs, neox ? 1u : 0u});
    return push(std::move(n));
  }

  bitnet_status attention(const bitnet_op& op) {
    const auto layer = static_cast<uint32_t>(op.ints[0]);
    const auto heads = static_cast<uint32_t>(op.ints[1]), kv = static_cast<uint32_t>(op.ints[2]);
    const auto head_dim = static_cast<uint32_t>(op.ints[3]);
    const uint32_t most_kept = device_.about().max_kept;
    if (head_dim > most_kept * tiles_.group)
      return report_.fail(BITNET_UNSUPPORTED,
                          "attention heads of %u elements, %u at most on this device; use the cpu "
                          "backend",
                          head_dim, most_kept * tiles_.group);
    node n = start(kernel_id::attn_paged, op, op.outputs[0], grid::heads, heads);
    n.spec.constants[3] = (head_dim + tiles_.group - 1) / tiles_.group;
    n.operands = {reads(op.inputs[0]),    {source::positions},   {source::sequences},
                  {source::block_tables}, {source::keys, layer}, {source::values, layer},
                  writes(op.outputs[0])};
    n.params = words_of(attn_paged_params{n.rows, heads, kv, head_dim, 0, 0, op.floats[0]});
    return push(std::move(n));
  }

  bitnet_status elementwise(const bitnet_op& op) {
    node n = start(kernel_id::elementwise, op, op.outputs[0], grid::threads, width(op.outputs[0]));
    n.spec.constants[1] = op.op;
    n.operands = {reads(op.inputs[0]), reads(op.inputs[op.inputs[1] == BITNET_NONE ? 0 : 1]),
                  writes(op.outputs[0])};
    n.params = words_of(elementwise_params{n.rows, width32(op.outputs[0])});
    return push(std::move(n));
  }

  const sdk::graph& graph_;
  const weight_set& weights_;
  const opened& device_;
  const sdk::reporter& report_;
  plan& out_;
  const tiles tiles_;
  std::vector<uint64_t> writer_, readers_;  // of each value
  std::vector<fusion> fusions_;             // of each op
};

}  // namespace

tiles tiles_for(const facts& about) noexcept {
  const uint32_t group = about.group_size;
  // On a processor neighbouring threads are lanes of one vector, and a thread that walks along a
  // row alone needs no exchange at the end.
  const bool processor = about.device_class == BITNET_DEVICE_CPU;
  return {group, processor ? 1 : std::min(group, 32u), most_tokens, 4};
}

uint32_t rows_of_group(const kernel_spec& spec) noexcept {
  const uint32_t teams = spec.constants[0] / spec.constants[1];
  return spec.id == kernel_id::linear_dense ? teams : teams * spec.constants[3];
}

uint64_t passes_of(const node& n, uint64_t context) noexcept {
  const uint64_t threads = n.spec.constants[0], lanes = std::max(n.spec.constants[1], 1u);
  const std::vector<uint32_t>& p = n.params;
  constexpr uint64_t around = 128;  // loops whose number of passes does not depend on the model
  // The look that ends a loop is a pass, too. Loops over a group's tokens and a thread's rows
  // count: whether they are unrolled is the driver's decision.
  switch (n.spec.id) {
    case kernel_id::attn_paged: {
      // By tiles of a position for each thread; eight elements of a head together, and those that
      // are left; positions of the tile; two trees over the threads, in two loops each.
      const uint64_t head_dim = p[3], tree = std::bit_width(threads) + uint64_t{1};
      uint64_t of_tile = 1 + (head_dim / 8 + 1) + (head_dim % 8 + 1) + (threads + 1) + 2 * tree;
      // Loops over what a thread keeps are unrolled, as tried with up to 32.
      const uint64_t kept = n.spec.constants[3];
      if (kept > 32) of_tile += (threads + 1) * (kept + 1);
      return (context + threads - 1) / threads * of_tile + around;
    }
    case kernel_id::linear_ternary: {
      const uint64_t k = p[1], row_words = p[3], scale_group = p[6], each = n.spec.constants[3];
      if (scale_group == 0) return row_words / lanes * most_tokens * (each + 2) + around;
      return each * most_tokens * (k / 4 + 2 * (k / scale_group) + 2) + around;
    }
    case kernel_id::linear_dense:
      return p[1] / lanes * (most_tokens + 2) + around;
    case kernel_id::bit_linear:
      return 4 * (p[1] / threads) + p[3] / lanes * (n.spec.constants[3] + 2) + around;
    case kernel_id::rms_norm:
    case kernel_id::act_quant:
    case kernel_id::norm_quant:
    case kernel_id::glu_quant:
      return 5 * (p[1] / threads) + around;
    default:  // a thread has a unit or two
      return around;
  }
}

bitnet_status make_plan(const sdk::graph& g, const weight_set& weights, const opened& device,
                        plan& out, const sdk::reporter& report) {
  return planner(g, weights, device, report, out).make();
}

}  // namespace bitnet::gpu

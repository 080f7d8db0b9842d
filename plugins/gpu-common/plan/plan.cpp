#include "plan.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "gpu-common/names.hpp"
#include "planner.hpp"

namespace bitnet::gpu {

using sdk::failed;
using source = operand::source;

namespace {

// The parameters that attn_paged and attn_tiles have in common.
template <class Params>
Params params_of_context(uint32_t rows, const bitnet_op& op) {
  Params p{};
  p.rows = rows;
  p.n_heads = static_cast<uint32_t>(op.ints[1]);
  p.n_kv_heads = static_cast<uint32_t>(op.ints[2]);
  p.head_dim = static_cast<uint32_t>(op.ints[3]);
  p.window = static_cast<uint32_t>(op.ints[4]);
  p.scale = op.floats[0];
  return p;
}

}  // namespace

bitnet_status planner::make() {
  for (uint64_t i = 0; i < graph_.ops.size(); ++i) {
    const bitnet_op& op = graph_.ops[i];
    if (sdk::is_composite(op) || fusions_.of[i].absorbed) continue;
    if (bitnet_status s = add(op, fusions_.of[i]); failed(s)) return s;
  }
  return BITNET_OK;
}

node planner::start(kernel_id id, const bitnet_op& op, uint32_t shape, gpu::grid grid,
                    uint64_t columns) {
  node n;
  n.spec.id = id;
  n.spec.constants[0] = tiles_.group;
  n.op = op.op;
  n.grid = grid;
  n.columns = columns;
  n.rows = rows_of(shape);
  if (op.weights[0] != BITNET_NONE) n.weight = &weights_.at(op.weights[0]);
  n.name = kernel_name(op.op, n.weight ? n.weight->view.format : BITNET_FORMAT_NONE, device_.name);
  if (n.weight) n.weight_bytes = n.weight->read_bytes();
  return n;
}

bitnet_status planner::push(node n) {
  out_.nodes.push_back(std::move(n));
  return BITNET_OK;
}

bitnet_status planner::add(const bitnet_op& op, const fusion& f) {
  // Values with a fixed number of rows exist as inputs of the graph, but an op that reads one also
  // writes one, so every such graph is rejected here.
  for (const uint32_t v : op.outputs)
    if (v != BITNET_NONE && graph_.values[v].dims[0] > 0)
      return report_.fail(BITNET_UNSUPPORTED,
                          "value %u has a fixed number of rows; use the cpu backend", v);
  switch (op.op) {
    case BITNET_OP_EMBED_GATHER:
      return embed_gather(op);
    case BITNET_OP_ACT_QUANT_I8:
      return act_quant(op, f);
    case BITNET_OP_ACT_QUANT_I8_GROUPED:
      return act_quant_groups(op, f);
    case BITNET_OP_LINEAR_TERNARY:
    case BITNET_OP_LINEAR_TERNARY_GROUPED:
      return linear_ternary(op, BITNET_NONE, op.outputs[0]);
    case BITNET_OP_LINEAR_DENSE:
      return linear_dense(op);
    case BITNET_OP_ROPE:
      return rope(op, f);
    case BITNET_OP_KV_WRITE:
      return kv_write(op, f);
    case BITNET_OP_ATTN_PAGED:
      return attention(op, f);
    case BITNET_OP_ADD:
      if (f.linear != no_op) {
        const bitnet_op& linear = graph_.ops[f.linear];
        return linear_ternary(linear, other_input(op, linear.outputs[0]), op.outputs[0]);
      }
      return elementwise(op);
    default:
      return add_element_op(op, f);
  }
}

// Parameters of a part of a matrix, of a range of tokens and of the pool are 0 in a plan:
// params_for() in program.cpp sets them when the program is bound.
bitnet_status planner::embed_gather(const bitnet_op& op) {
  node n = start(kernel_id::embed_gather, op, op.outputs[0], grid::threads, width(op.outputs[0]));
  n.spec.constants[1] = n.weight->view.format;
  n.weight_bytes = n.weight->read_bytes() / n.weight->view.m;
  // Without scales the kernel does not read this binding: any buffer will do.
  const source scales = n.weight->scales.bytes != 0 ? source::scales : source::tokens;
  n.operands = {{source::tokens}, {source::matrix}, {scales}, writes(op.outputs[0])};
  n.params = embed_gather_params{.rows = n.rows,
                                 .k = width32(op.outputs[0]),
                                 .row_words = static_cast<uint32_t>(n.weight->words),
                                 .first_row = 0,
                                 .n_rows = 0,
                                 .scale_group = static_cast<uint32_t>(n.weight->view.scale_group)};
  return push(std::move(n));
}

bitnet_status planner::act_quant(const bitnet_op& op, const fusion& f) {
  const uint32_t* out = op.outputs;
  const uint32_t k = width32(op.inputs[0]);
  const bitnet_op* norm = f.norm == no_op ? nullptr : &graph_.ops[f.norm];
  if (f.mul != no_op) {
    const bitnet_op& mul = graph_.ops[f.mul];
    const bitnet_op& activation = graph_.ops[f.activation];
    const uint32_t up = other_input(mul, activation.outputs[0]);
    node n = start(kernel_id::glu_quant, norm ? *norm : op, out[0], grid::rows, 1);
    n.op = op.op;
    n.spec.constants[1] = activation.op;
    n.spec.constants[2] = norm ? 1 : 0;
    n.name = glu_quant_name(activation.op, norm != nullptr, device_.name);
    const operand weight = norm ? operand{source::vector} : reads(up);
    n.operands = {reads(activation.inputs[0]), reads(up),      weight,
                  writes(mul.outputs[0]),      writes(out[0]), writes(out[1])};
    n.params = glu_quant_params{.rows = n.rows, .k = k, .eps = norm ? norm->floats[0] : 0.0f};
    return push(std::move(n));
  }
  if (norm) {
    node n = start(kernel_id::norm_quant, *norm, out[0], grid::rows, 1);
    n.op = op.op;
    if (f.repeated) n.when = steps::of_more_rows;
    n.name = norm_quant_name(device_.name);
    n.operands = {reads(norm->inputs[0]), {source::vector}, writes(out[0]), writes(out[1])};
    n.params = norm_quant_params{n.rows, k, norm->floats[0]};
    return push(std::move(n));
  }
  node n = start(kernel_id::act_quant, op, out[0], grid::rows, 1);
  if (f.repeated) n.when = steps::of_more_rows;
  n.operands = {reads(op.inputs[0]), writes(out[0]), writes(out[1])};
  n.params = act_quant_params{n.rows, k};
  return push(std::move(n));
}

bitnet_status planner::linear_ternary(const bitnet_op& op, uint32_t residual, uint32_t result) {
  const uint64_t quant = fusions_.writer[op.inputs[0]];
  const bool repeats = quant != no_op && fusions_.of[quant].repeated;
  if (repeats)
    if (bitnet_status s = bit_linear(op, quant, residual, result); failed(s)) return s;
  node n = start(kernel_id::linear_ternary, op, result, grid::matrix, 0);
  if (repeats) n.when = steps::of_more_rows;
  const sdk::weight& w = n.weight->view;
  const bool grouped = op.op == BITNET_OP_LINEAR_TERNARY_GROUPED;
  n.spec.constants[1] = grouped || w.scale_group != 0 ? 1 : tiles_.lanes;
  n.spec.constants[3] = tiles_.rows_each;
  n.spec.constants[4] = grouped ? static_cast<uint32_t>(w.k) / width32(op.inputs[1]) : 0;
  if (residual != BITNET_NONE) n.name = linear_add_name(op.op, device_.name);
  n.operands = {reads(op.inputs[0]),
                reads(op.inputs[1]),
                {source::matrix},
                {source::scales},
                reads(residual == BITNET_NONE ? op.inputs[1] : residual),
                writes(result)};
  n.params = linear_ternary_params{.rows = n.rows,
                                   .k = static_cast<uint32_t>(w.k),
                                   .m = static_cast<uint32_t>(w.m),
                                   .row_words = static_cast<uint32_t>(n.weight->words),
                                   .first_row = 0,
                                   .n_rows = 0,
                                   .scale_group = static_cast<uint32_t>(w.scale_group),
                                   .add = residual == BITNET_NONE ? 0u : 1u};
  return push(std::move(n));
}

// Plans the product `op` with the ACT_QUANT_I8 `quant` before it, and the RMS_NORM before that.
bitnet_status planner::bit_linear(const bitnet_op& op, uint64_t quant, uint32_t residual,
                                  uint32_t result) {
  node n = start(kernel_id::bit_linear, op, result, grid::matrix, 0);
  const sdk::weight& w = n.weight->view;
  const uint64_t at = fusions_.of[quant].norm;
  const bitnet_op* norm = at == no_op ? nullptr : &graph_.ops[at];
  const uint32_t x = norm ? norm->inputs[0] : graph_.ops[quant].inputs[0];
  n.op = BITNET_OP_BIT_LINEAR;
  n.when = steps::of_one_row;
  n.spec.constants[1] = tiles_.lanes;
  n.spec.constants[2] = norm ? 1 : 0;
  n.spec.constants[3] = tiles_.rows_each;
  n.spec.constants[4] = static_cast<uint32_t>(i8_row_words(w.k));
  n.name = bit_linear_name(norm != nullptr, residual != BITNET_NONE, device_.name);
  if (norm) n.vector = &weights_.at(norm->weights[0]);
  // Only the first product counts the norm's bytes: the others find it in a cache.
  if (norm && !std::exchange(fusions_.of[quant].counted, true))
    n.weight_bytes += n.vector->device_bytes();
  const operand weight = norm ? operand{source::vector} : reads(x);
  n.operands = {reads(x),
                weight,
                {source::matrix},
                {source::scales},
                reads(residual == BITNET_NONE ? x : residual),
                writes(result)};
  n.params = bit_linear_params{.rows = n.rows,
                               .k = static_cast<uint32_t>(w.k),
                               .m = static_cast<uint32_t>(w.m),
                               .row_words = static_cast<uint32_t>(n.weight->words),
                               .first_row = 0,
                               .n_rows = 0,
                               .add = residual == BITNET_NONE ? 0u : 1u,
                               .eps = norm ? norm->floats[0] : 0.0f};
  return push(std::move(n));
}

bitnet_status planner::linear_dense(const bitnet_op& op) {
  node n = start(kernel_id::linear_dense, op, op.outputs[0], grid::matrix, 0);
  const sdk::weight& w = n.weight->view;
  n.spec.constants[1] = tiles_.lanes;
  n.spec.constants[3] = w.format;
  n.operands = {reads(op.inputs[0]), {source::matrix}, writes(op.outputs[0])};
  n.params = linear_dense_params{.rows = n.rows,
                                 .k = static_cast<uint32_t>(w.k),
                                 .m = static_cast<uint32_t>(w.m),
                                 .row_words = static_cast<uint32_t>(n.weight->words),
                                 .first_row = 0,
                                 .n_rows = 0};
  if (n.weight->copy && makes_logits(op.outputs[0])) {
    n.of = logits::all;
    top_head(op, n);
  }
  round_many(op, n);
  return push(std::move(n));
}

// If the program permits it, `plain` runs in steps of few rows only. Steps of many rows get a
// kernel that rounds activations, once for all rows of the matrix.
void planner::round_many(const bitnet_op& op, node& plain) {
  const sdk::weight& w = plain.weight->view;
  const std::string name = rounded_name(w.format, device_.name);
  const uint32_t precision = rounded_precision(w.format);
  if ((precisions_ >> precision & 1) == 0 || name.empty() || device_.is_disabled(name) ||
      (device_.driver->rounded_products() >> precision & 1) == 0)
    return;
  plain.when = steps::of_few_rows;
  const auto at = static_cast<uint32_t>(out_.rounded_words.size());
  out_.rounded_words.push_back(rounded_row_words(w.k));
  node first = start(kernel_id::round_rows, op, op.outputs[0], grid::rows, 1);
  first.spec.constants[3] = w.format;
  first.weight_bytes = 0;
  first.operands = {reads(op.inputs[0]), {source::rounded, at, true}};
  first.params = round_rows_params{first.rows, static_cast<uint32_t>(w.k)};
  node product = plain;
  product.spec.id = kernel_id::linear_dense_rounded;
  product.operands[0] = {source::rounded, at};
  const auto& p = std::get<linear_dense_params>(plain.params);
  product.params = linear_dense_rounded_params{
      .rows = p.rows, .k = p.k, .m = p.m, .row_words = p.row_words, .first_row = 0, .n_rows = 0};
  for (node* one : {&first, &product}) {
    one->name = name;
    one->of = plain.of;
    one->when = steps::of_many_rows;
    out_.nodes.push_back(std::move(*one));
  }
}

bitnet_status planner::rope(const bitnet_op& op, const fusion& f) {
  const auto heads = static_cast<uint32_t>(op.ints[0]);
  const auto head_dim = static_cast<uint32_t>(op.ints[1]);
  const uint32_t pairs = static_cast<uint32_t>(op.ints[2]) / 2;
  node n = start(kernel_id::rope, op, op.outputs[0], grid::threads,
                 uint64_t{heads} * (head_dim - pairs));
  const uint32_t table = rotations_of(op, pairs);
  n.operands = {reads(op.inputs[0]), {source::rotations, table}, writes(op.outputs[0])};
  n.params = rope_params{n.rows, heads, head_dim, pairs, op.ints[3] == BITNET_ROPE_NEOX ? 1u : 0u};
  n.weight = nullptr;  // the host reads it
  n.not_of_one_row = f.in_attention;
  return push(std::move(n));
}

uint32_t planner::rotations_of(const bitnet_op& op, uint32_t pairs) {
  rotation_table t{op.floats[0],
                   op.floats[1],
                   pairs,
                   op.weights[0] == BITNET_NONE ? nullptr : &weights_.at(op.weights[0]),
                   {}};
  for (uint32_t i = 0; i < out_.rotations.size(); ++i) {
    const rotation_table& known = out_.rotations[i];
    if (known.theta == t.theta && known.factor == t.factor && known.pairs == pairs &&
        known.divisors == t.divisors)
      return i;
  }
  const bool known = t.divisors && !t.divisors->host.empty();  // false while only a plan is made
  for (uint32_t i = 0; i < pairs; ++i) {
    const double f = double{t.factor} * std::pow(double{t.theta}, -2.0 * i / (2.0 * pairs));
    t.frequencies.push_back(known ? f / double{t.divisors->host[i]} : f);
  }
  out_.rotations.push_back(std::move(t));
  return static_cast<uint32_t>(out_.rotations.size() - 1);
}

bitnet_status planner::kv_write(const bitnet_op& op, const fusion& f) {
  const auto layer = static_cast<uint32_t>(op.ints[0]);
  const bitnet_op* rope = f.rope == no_op ? nullptr : &graph_.ops[f.rope];
  const uint32_t k = rope ? rope->inputs[0] : op.inputs[0];
  const uint32_t pairs = rope ? static_cast<uint32_t>(rope->ints[2]) / 2 : 0;
  node n = start(kernel_id::kv_write, op, op.inputs[0], grid::threads, width(op.inputs[0]));
  n.columns *= 2;  // the words of f32 keys and values, the most possible
  n.spec.constants[3] = rope ? 1 : 0;
  if (rope) n.name = rope_kv_name(device_.name);
  n.operands = {{source::slots},
                reads(k),
                reads(op.inputs[1]),
                rope ? operand{source::rotations, rotations_of(*rope, pairs)} : reads(k),
                {source::keys, layer, true},
                {source::values, layer, true}};
  n.params = kv_write_params{.rows = n.rows,
                             .n_kv_heads = 0,
                             .head_dim = 0,
                             .block_tokens = 0,
                             .pairs = pairs,
                             .neox = rope && rope->ints[3] == BITNET_ROPE_NEOX ? 1u : 0u};
  n.not_of_one_row = f.in_attention;
  return push(std::move(n));
}

bitnet_status planner::attention(const bitnet_op& op, const fusion& f) {
  const auto layer = static_cast<uint32_t>(op.ints[0]);
  const auto heads = static_cast<uint32_t>(op.ints[1]);
  const auto head_dim = static_cast<uint32_t>(op.ints[3]);
  const uint32_t most_kept = device_.capabilities().max_kept;
  if (head_dim > most_kept * tiles_.group)
    return report_.fail(
        BITNET_UNSUPPORTED,
        "attention heads of %u elements; this device takes at most %u; use the cpu backend",
        head_dim, most_kept * tiles_.group);
  if (device_.capabilities().attention_rows != 0) return attention_by_tiles(op, f);
  node n = start(kernel_id::attn_paged, op, op.outputs[0], grid::heads, heads);
  n.spec.constants[3] = (head_dim + tiles_.group - 1) / tiles_.group;
  n.operands = {reads(op.inputs[0]),    {source::positions},   {source::sequences},
                {source::block_tables}, {source::keys, layer}, {source::values, layer},
                writes(op.outputs[0])};
  n.params = params_of_context<attn_paged_params>(n.rows, op);
  return push(std::move(n));
}

// For few tokens with a long context each part of the context has a group of its own, and a further
// command merges their results. Otherwise one group takes the whole context.
bitnet_status planner::attention_by_tiles(const bitnet_op& op, const fusion& f) {
  const auto layer = static_cast<uint32_t>(op.ints[0]);
  const auto heads = static_cast<uint32_t>(op.ints[1]), kv = static_cast<uint32_t>(op.ints[2]);
  const auto head_dim = static_cast<uint32_t>(op.ints[3]);
  const auto window = static_cast<uint32_t>(op.ints[4]);
  node whole = start(kernel_id::attn_tiles, op, op.outputs[0], grid::tiles, kv);
  whole.when = steps::not_in_parts;
  whole.spec.constants[3] = tile_rows_for(device_.capabilities(), heads / kv, head_dim);
  whole.spec.constants[4] = head_dim;
  whole.operands = {reads(op.inputs[0]),    {source::positions},   {source::sequences},
                    {source::block_tables}, {source::keys, layer}, {source::values, layer},
                    writes(op.outputs[0])};
  whole.params = params_of_context<attn_tiles_params>(whole.rows, op);
  round_prompts(whole);
  const std::string parts_name = attention_parts_name(device_.name);
  if (device_.is_disabled(parts_name)) {
    whole.when = steps::all;
    return push(std::move(whole));
  }
  node cut = whole;
  cut.name = parts_name;
  cut.when = steps::in_parts;
  const auto parts = static_cast<uint32_t>(out_.part_words.size());
  out_.part_words.push_back(uint64_t{heads} * (head_dim + 2));
  cut.operands.back() = {source::parts, parts, true};
  node merged = start(kernel_id::attn_merge, op, op.outputs[0], grid::heads, heads);
  merged.name = parts_name;
  merged.when = steps::in_parts;
  merged.operands = {{source::positions}, {source::parts, parts}, writes(op.outputs[0])};
  merged.params = attn_merge_params{merged.rows, heads, head_dim, window, 0};
  if (f.kv_write != no_op) {
    out_.nodes.push_back(attention_of_token(op, f, cut));
    whole.not_of_one_row = cut.not_of_one_row = merged.not_of_one_row = true;
  }
  out_.nodes.push_back(std::move(whole));
  out_.nodes.push_back(std::move(cut));
  return push(std::move(merged));
}

// If the program permits it, `whole` leaves steps of many rows to a kernel that rounds factors.
void planner::round_prompts(node& whole) {
  const uint32_t head_dim = whole.spec.constants[4];
  const std::string name = rounded_attention_name(device_.name);
  if ((precisions_ >> BITNET_PRECISION_F16 & 1) == 0 || device_.is_disabled(name) ||
      (device_.driver->rounded_heads() & rounded_heads_bit(head_dim)) == 0)
    return;
  node rounded = whole;
  rounded.spec.id = kernel_id::attn_rounded;
  rounded.spec.constants[3] =
      tile_rows_for(device_.capabilities(), device_.capabilities().attention_rows, head_dim);
  rounded.params = attn_rounded_params{std::get<attn_tiles_params>(whole.params)};
  rounded.name = name;
  rounded.when = steps::of_prompts;
  whole.not_of_prompts = true;
  out_.nodes.push_back(std::move(rounded));
}

// One command computes the whole attention of a step of one row: the ops that make its queries,
// keys and values, with norms of heads if both have them, and the merging of parts. `cut` is the
// kernel that leaves the parts unmerged.
node planner::attention_of_token(const bitnet_op& op, const fusion& f, const node& cut) {
  const bitnet_op& write = graph_.ops[f.kv_write];
  const bitnet_op &q = graph_.ops[f.rope_of_q], &k = graph_.ops[fusions_.of[f.kv_write].rope];
  const bool norms = f.norm_of_q != no_op;
  // Where queries and keys are normed, these norms make them; else what rotates them does.
  const bitnet_op& first_q = norms ? graph_.ops[f.norm_of_q] : q;
  const bitnet_op& first_k = norms ? graph_.ops[f.norm_of_k] : k;
  const auto layer = static_cast<uint32_t>(op.ints[0]);
  const uint32_t pairs = static_cast<uint32_t>(q.ints[2]) / 2;
  const auto& of_tile = std::get<attn_tiles_params>(cut.params);
  node n = cut;
  n.spec.id = kernel_id::attn_token;
  n.name = attn_token_name(norms, device_.name);
  n.when = steps::of_one_row;
  if (norms) {  // a vector is a matrix of one part
    n.weight = &weights_.at(first_q.weights[0]);
    n.vector = &weights_.at(first_k.weights[0]);
    n.weight_bytes = n.weight->device_bytes() + n.vector->device_bytes();
  }
  const operand unread = reads(first_q.inputs[0]);
  n.operands = {reads(first_q.inputs[0]),
                reads(first_k.inputs[0]),
                reads(write.inputs[1]),
                {source::rotations, rotations_of(q, pairs)},
                {source::positions},
                {source::sequences},
                {source::slots},
                {source::block_tables},
                norms ? operand{source::matrix} : unread,
                norms ? operand{source::vector} : unread,
                {source::keys, layer, true},
                {source::values, layer, true},
                cut.operands.back(),
                {source::tickets, 0, true},
                writes(op.outputs[0])};
  n.params = attn_token_params{.rows = n.rows,
                               .n_heads = of_tile.n_heads,
                               .n_kv_heads = of_tile.n_kv_heads,
                               .head_dim = of_tile.head_dim,
                               .block_tokens = 0,
                               .max_blocks = 0,
                               .scale = of_tile.scale,
                               .window = of_tile.window,
                               .parts = 0,
                               .pairs = pairs,
                               .neox = q.ints[3] == BITNET_ROPE_NEOX ? 1u : 0u,
                               .norms = norms ? 1u : 0u,
                               .eps_of_q = norms ? first_q.floats[0] : 0.0f,
                               .eps_of_k = norms ? first_k.floats[0] : 0.0f};
  out_.tickets = std::max(out_.tickets, of_tile.n_kv_heads);
  return n;
}

uint32_t tile_rows_for(const capabilities& can, uint64_t wanted, uint64_t head_dim) noexcept {
  uint32_t rows = 4;
  while (rows < wanted && rows < can.attention_rows &&
         4 * attn_tile_words(uint64_t{2} * rows, head_dim) <= can.shared_memory_bytes)
    rows *= 2;
  return rows;
}

uint64_t tile_groups(const node& n, const kernel_spec& spec, uint64_t parts) noexcept {
  if (std::holds_alternative<attn_token_params>(n.params)) return n.columns * parts;
  const attn_tiles_params* p = std::get_if<attn_tiles_params>(&n.params);
  if (!p) p = std::get_if<attn_rounded_params>(&n.params);
  if (!p) return 0;
  const uint32_t shares = attn_tile_shares(p->n_heads / p->n_kv_heads, spec.constants[3]);
  return n.columns * shares * (n.when == steps::in_parts ? parts : 1);
}

tiles tiles_for(const facts& about) noexcept {
  const uint32_t group = about.capabilities.group_size;
  // On a CPU neighbouring threads are lanes of one vector, and a thread that reads a row alone
  // needs no exchange at the end.
  const bool processor = about.device_class == BITNET_DEVICE_CPU;
  return {group, processor ? 1 : std::min(group, 32u), most_tokens, 4};
}

uint32_t rows_of_group(const kernel_spec& spec) noexcept {
  const uint32_t teams = spec.constants[0] / spec.constants[1];
  const bool dense =
      spec.id == kernel_id::linear_dense || spec.id == kernel_id::linear_dense_rounded;
  return dense ? teams : teams * spec.constants[3];
}

bitnet_status make_plan(const sdk::graph& g, const weights& all, const opened& device,
                        uint32_t precisions, plan& out, const sdk::reporter& report) {
  return planner(g, all, device, precisions, report, out).make();
}

}  // namespace bitnet::gpu

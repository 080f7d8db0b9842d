#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "gpu-common/names.hpp"
#include "planner.hpp"

namespace bitnet::gpu {
namespace {

using sdk::failed;
using source = operand::source;

// Elements that a group transforms together. Most: 16 KiB, which Vulkan and OpenCL guarantee.
// Least: with fewer, threads would be idle.
uint32_t tile_for(const capabilities& can, uint32_t block) noexcept {
  constexpr uint32_t least = 512, most = 4096;
  const uint32_t fits = std::bit_floor(can.shared_memory_bytes / uint32_t{sizeof(float)});
  return std::min(std::clamp(block, least, most), std::max(fits, 64u));
}

}  // namespace

bool fits_group(const capabilities& can, const bitnet_op& op) noexcept {
  if (op.op != BITNET_OP_DELTA_RULE) return true;
  // A query and a key, and two sums for each thread, which may be doubles.
  const auto d_k = static_cast<uint64_t>(std::max(op.ints[3], 0));
  return 4 * (2 * d_k + uint64_t{4} * can.group_size) <= can.shared_memory_bytes;
}

bitnet_status planner::add_element_op(const bitnet_op& op, const fusion& f) {
  switch (op.op) {
    case BITNET_OP_RMS_NORM:
      return rms_norm(op, 1, f);
    case BITNET_OP_RMS_NORM_HEADS:
      return rms_norm(op, static_cast<uint32_t>(op.ints[0]), f);
    case BITNET_OP_HADAMARD:
      return hadamard(op);
    case BITNET_OP_GATHER_ROWS:
      return gather_rows(op);
    case BITNET_OP_MUL:
    case BITNET_OP_RELU2:
    case BITNET_OP_SILU:
    case BITNET_OP_GELU:
    case BITNET_OP_SCALE:
    case BITNET_OP_SIGMOID:
      return elementwise(op);
    case BITNET_OP_COLUMNS:
      return columns(op);
    case BITNET_OP_SHORT_CONV:
      return short_conv(op);
    case BITNET_OP_DELTA_GATES:
      return delta_gates(op);
    case BITNET_OP_DELTA_RULE:
      return delta_rule(op);
    default:
      return report_.fail(BITNET_UNSUPPORTED, "no kernel for op %s (%u); use the cpu backend",
                          sdk::find_op(op.op)->name, op.op);
  }
}

// Quantises activations with a factor to each group of elements: those that an earlier kernel left,
// or those of ops that the same kernel computes.
bitnet_status planner::act_quant_groups(const bitnet_op& op, const fusion& f) {
  const uint32_t* out = op.outputs;
  const uint32_t k = width32(op.inputs[0]);
  const auto group = static_cast<uint32_t>(op.ints[0]);
  const uint64_t words = i8_row_words(k);  // with the padding after k, which becomes zeros
  if (f.norm != no_op) {
    const bitnet_op& norm = graph_.ops[f.norm];
    node n = start(kernel_id::norm_quant_groups, norm, out[0], grid::rows, 1);
    n.op = op.op;
    n.name = norm_quant_groups_name(device_.name);
    n.operands = {reads(norm.inputs[0]), {source::vector}, writes(out[0]), writes(out[1])};
    n.params = norm_quant_groups_params{n.rows, k, norm.floats[0], group};
    return push(std::move(n));
  }
  if (f.mul != no_op) {
    const bitnet_op& activation = graph_.ops[f.activation];
    node n = start(kernel_id::glu_quant_groups, op, out[0], grid::threads, words);
    n.spec.constants[1] = activation.op;
    n.name = glu_quant_groups_name(activation.op, device_.name);
    n.operands = {reads(activation.inputs[0]),
                  reads(other_input(graph_.ops[f.mul], activation.outputs[0])), writes(out[0]),
                  writes(out[1])};
    n.params = glu_quant_groups_params{n.rows, k, group};
    return push(std::move(n));
  }
  const uint64_t threads = device_.quirks().quantises_by_words ? words : 4 * words / group;
  node n = start(kernel_id::act_quant_groups, op, out[0], grid::threads, threads);
  n.operands = {reads(op.inputs[0]), writes(out[0]), writes(out[1])};
  n.params = act_quant_groups_params{n.rows, k, group};
  return push(std::move(n));
}

bitnet_status planner::rms_norm(const bitnet_op& op, uint32_t heads, const fusion& f) {
  node n = start(kernel_id::rms_norm, op, op.outputs[0], grid::rows, heads);
  n.operands = {reads(op.inputs[0]), {source::vector}, writes(op.outputs[0])};
  n.params = rms_norm_params{n.rows, width32(op.inputs[0]) / heads, op.floats[0], heads};
  n.not_of_one_row = f.in_attention;
  return push(std::move(n));
}

// A block longer than a tile takes several passes; from the second on they work in place.
bitnet_status planner::hadamard(const bitnet_op& op) {
  const auto block = static_cast<uint32_t>(op.ints[0]);
  const uint32_t k = width32(op.inputs[0]), tile = tile_for(device_.capabilities(), block);
  const bool has_factors = op.weights[0] != BITNET_NONE;
  const bool first = op.ints[1] == BITNET_HADAMARD_FACTORS_FIRST;
  uint32_t from = 1, read = op.inputs[0];
  do {
    const uint32_t to = std::min(block, from * tile);
    const bool before = has_factors && first && from == 1;
    const bool after = has_factors && !first && to == block;
    node n = start(kernel_id::hadamard, op, op.outputs[0], grid::rows, (k + tile - 1) / tile);
    n.spec.constants[1] = tile;
    if (!before && !after) n.weight_bytes = 0;
    const operand weight = before || after ? operand{source::vector} : reads(read);
    n.operands = {reads(read), weight, writes(op.outputs[0])};
    const double size = to == block ? 1 / std::sqrt(static_cast<double>(block)) : 1;
    n.params = hadamard_params{.rows = n.rows,
                               .k = k,
                               .from = from,
                               .to = to,
                               .before = before,
                               .after = after,
                               .scale = static_cast<float>(size)};
    out_.nodes.push_back(std::move(n));
    from = to;
    read = op.outputs[0];
  } while (from < block);
  return BITNET_OK;
}

bitnet_status planner::elementwise(const bitnet_op& op) {
  node n = start(kernel_id::elementwise, op, op.outputs[0], grid::threads, width(op.outputs[0]));
  n.spec.constants[1] = op.op;
  n.operands = {reads(op.inputs[0]), reads(op.inputs[op.inputs[1] == BITNET_NONE ? 0 : 1]),
                writes(op.outputs[0])};
  n.params = elementwise_params{n.rows, width32(op.outputs[0]), op.floats[0]};
  return push(std::move(n));
}

bitnet_status planner::gather_rows(const bitnet_op& op) {
  const uint32_t out = op.outputs[0];
  node n = start(kernel_id::gather_rows, op, out, grid::threads, width(out));
  n.operands = {{source::output_rows}, reads(op.inputs[0]), writes(out)};
  n.params = gather_rows_params{n.rows, width32(out)};
  return push(std::move(n));
}

bitnet_status planner::columns(const bitnet_op& op) {
  node n = start(kernel_id::columns, op, op.outputs[0], grid::threads, width(op.outputs[0]));
  n.operands = {reads(op.inputs[0]), writes(op.outputs[0])};
  const auto at = [&](uint64_t i) { return static_cast<uint32_t>(op.ints[i]); };
  n.params = columns_params{.rows = n.rows,
                            .k = width32(op.inputs[0]),
                            .m = width32(op.outputs[0]),
                            .part = at(0),
                            .first = at(1),
                            .inner = at(2),
                            .inner_stride = at(3),
                            .outer_stride = at(5)};
  return push(std::move(n));
}

bitnet_status planner::short_conv(const bitnet_op& op) {
  node n = start(kernel_id::short_conv, op, op.outputs[0], grid::threads, width(op.outputs[0]));
  if (bitnet_status s = check_whole(n); failed(s)) return s;
  n.spec.constants[1] = static_cast<uint32_t>(n.weight->view.k);
  n.operands = {reads(op.inputs[0]),  {source::vector}, {source::positions},
                {source::sequences},  {source::states}, {source::state, 0, true},
                writes(op.outputs[0])};
  const auto element = static_cast<uint32_t>(op.ints[0]);
  n.params = short_conv_params{.rows = n.rows,
                               .k = width32(op.inputs[0]),
                               .element = element,
                               .state_words = 0,
                               .first = 0,
                               .last = 0};
  return push(std::move(n));
}

bitnet_status planner::delta_gates(const bitnet_op& op) {
  node n = start(kernel_id::delta_gates, op, op.outputs[0], grid::threads, width(op.inputs[0]));
  if (bitnet_status s = check_whole(n); failed(s)) return s;
  n.operands = {reads(op.inputs[0]), reads(op.inputs[1]), {source::vector}, writes(op.outputs[0])};
  n.params = delta_gates_params{n.rows, width32(op.inputs[0])};
  return push(std::move(n));
}

bitnet_status planner::delta_rule(const bitnet_op& op) {
  const auto at = [&](uint64_t i) { return static_cast<uint32_t>(op.ints[i]); };
  const uint32_t heads = at(2), d_k = at(3), d_v = at(4), threads = tiles_.group;
  if (!fits_group(device_.capabilities(), op))
    return report_.fail(BITNET_UNSUPPORTED,
                        "keys of %u elements are more than the %u bytes that work groups of %s "
                        "have; use the cpu backend",
                        d_k, device_.capabilities().shared_memory_bytes,
                        device_.about().name.c_str());
  // A group of one thread is a CPU core, which processes vectors of columns.
  const uint32_t tiles = threads == 1 ? 1 : (d_v + threads - 1) / threads;
  node n = start(kernel_id::delta_rule, op, op.outputs[0], grid::rows, uint64_t{heads} * tiles);
  n.spec.constants[1] = d_k;
  n.operands = {reads(op.inputs[0]),  reads(op.inputs[1]), {source::positions},
                {source::sequences},  {source::states},    {source::state, 0, true},
                writes(op.outputs[0])};
  const uint32_t turns = op.ints[5] == BITNET_DELTA_TURNS ? 1 : 0;
  n.params = delta_rule_params{.rows = n.rows,
                               .element = at(0),
                               .state_words = 0,
                               .n_k = at(1),
                               .n_v = heads,
                               .d_v = d_v,
                               .turns = turns,
                               .tiles = tiles,
                               .scale = op.floats[0],
                               .eps = op.floats[1],
                               .first = 0,
                               .last = 0};
  return push(std::move(n));
}

// Rejects cut matrices for kernels that need the whole matrix in one binding.
bitnet_status planner::check_whole(const node& n) const {
  if (n.weight->parts.size() == 1) return BITNET_OK;
  return report_.fail(BITNET_UNSUPPORTED,
                      "%s: a weight of %llu bytes is more than the %s that a kernel sees at once "
                      "on %s; use the cpu backend",
                      n.name.c_str(), static_cast<unsigned long long>(n.weight->device_bytes()),
                      binding_limit(device_.capabilities()).text().c_str(),
                      device_.about().name.c_str());
}

}  // namespace bitnet::gpu

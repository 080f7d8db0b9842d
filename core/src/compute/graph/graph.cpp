#include "compute/graph/graph.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "base/dense_formats.hpp"
#include "text/ascii.hpp"

namespace bitnet::compute {
namespace {

constexpr uint32_t bit(uint32_t role) {
  return 1U << role;
}

// The step facts that an op reads, by ops.h.
uint32_t reads(uint32_t op) {
  switch (op) {
    case BITNET_OP_EMBED_GATHER:
      return bit(BITNET_PORT_TOKENS);
    case BITNET_OP_ROPE:
      return bit(BITNET_PORT_POSITIONS);
    case BITNET_OP_KV_WRITE:
      return bit(BITNET_PORT_SLOTS);
    case BITNET_OP_ATTN_PAGED:
      return bit(BITNET_PORT_POSITIONS) | bit(BITNET_PORT_SEQUENCES) |
             bit(BITNET_PORT_BLOCK_TABLES);
    case BITNET_OP_GATHER_ROWS:
      return bit(BITNET_PORT_OUTPUT_ROWS);
    case BITNET_OP_SHORT_CONV:
    case BITNET_OP_DELTA_RULE:
      return bit(BITNET_PORT_POSITIONS) | bit(BITNET_PORT_SEQUENCES) | bit(BITNET_PORT_STATES);
    default:
      return 0;
  }
}

}  // namespace

uint32_t graph::value(uint32_t dtype, int64_t rows, int64_t columns) {
  values.push_back({dtype, 0, {rows, columns}});
  return static_cast<uint32_t>(values.size() - 1);
}

bitnet_op& graph::emit(uint32_t op, std::span<const uint32_t> inputs,
                       std::span<const uint32_t> outputs, std::span<const uint32_t> weights) {
  bitnet_op o{};
  o.op = op;
  const auto put = [](uint32_t(&to)[4], std::span<const uint32_t> from) {
    std::ranges::fill(to, BITNET_NONE);
    std::ranges::copy(from, to);
  };
  put(o.inputs, inputs);
  put(o.outputs, outputs);
  put(o.weights, weights);
  return ops.emplace_back(o);
}

std::size_t graph::begin() {
  ops.emplace_back();
  return ops.size() - 1;
}

void graph::end(std::size_t at, uint32_t op, std::initializer_list<uint32_t> inputs,
                std::initializer_list<uint32_t> outputs) {
  emit(op, inputs, outputs);
  ops[at] = ops.back();
  ops.pop_back();
  ops[at].body_count = static_cast<uint32_t>(ops.size() - at - 1);
}

void graph::drop(std::size_t at) {
  ops.erase(ops.begin() + static_cast<std::ptrdiff_t>(at));
}

void graph::add_facts() {
  uint32_t read = 0;
  for (const bitnet_op& o : ops) read |= reads(o.op);
  for (uint32_t role = BITNET_PORT_TOKENS; role <= BITNET_PORT_STATES; ++role)
    if ((read & bit(role)) != 0) add_port(role, BITNET_NONE);
}

uint32_t graph::logits() const {
  const auto at = std::ranges::find(ports, BITNET_PORT_LOGITS, &bitnet_port::role);
  return at == ports.end() ? BITNET_NONE : at->value;
}

bitnet_graph graph::view() const {
  bitnet_graph g{};
  g.struct_size = sizeof g;
  g.value_size = sizeof(bitnet_value);
  g.op_size = sizeof(bitnet_op);
  g.port_size = sizeof(bitnet_port);
  g.n_values = static_cast<uint32_t>(values.size());
  g.n_ops = static_cast<uint32_t>(ops.size());
  g.n_ports = static_cast<uint32_t>(ports.size());
  g.values = values.data();
  g.ops = ops.data();
  g.ports = ports.data();
  return g;
}

std::string op_name(uint32_t op) {
  switch (op) {
#define BITNET_CASE(name, id, ...) \
  case id:                         \
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
#define BITNET_DENSE_NAME(name, id, ...) \
  case BITNET_FORMAT_##id:               \
    return #name;
      BITNET_DENSE_FORMATS(BITNET_DENSE_NAME)
#undef BITNET_DENSE_NAME
    case BITNET_FORMAT_TERNARY2:
      return "ternary2";
    default:
      return fmt::format("format {}", format);
  }
}

}  // namespace bitnet::compute

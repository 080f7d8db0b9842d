// SPDX-License-Identifier: Apache-2.0 OR MIT
#pragma once
// A graph of ops as a backend keeps it, with the properties that follow from the graph alone.

#include <vector>

#include "bitnet/abi/program.h"
#include "bitnet/sdk/guard.hpp"
#include "bitnet/sdk/received.hpp"

namespace bitnet::sdk {

struct op_signature {
  uint32_t id, inputs, weights, outputs, ints, floats;
  const char* name;
};

inline const op_signature* find_op(uint32_t id) noexcept {
#define BITNET_SDK_ROW(NAME, ID, INPUTS, WEIGHTS, OUTPUTS, INTS, FLOATS) \
  {ID, INPUTS, WEIGHTS, OUTPUTS, INTS, FLOATS, #NAME},
  static constexpr op_signature rows[] = {BITNET_OP_LIST(BITNET_SDK_ROW)};
#undef BITNET_SDK_ROW
  for (const op_signature& row : rows)
    if (row.id == id) return &row;
  return nullptr;
}

// A private id is a composite if it has a body.
inline bool is_composite(const bitnet_op& op) noexcept {
  return op.op >= BITNET_PRIVATE ? op.body_count != 0 : op.op >= BITNET_OP_FIRST_COMPOSITE;
}

// True if the op is attention with BITNET_ATTENTION_LAYER_WINDOW.
inline bool has_own_window(const bitnet_op& op) noexcept {
  return op.op == BITNET_OP_ATTN_PAGED && op.ints[4] != 0;
}

// Bytes of an element, 0 for an unknown type.
inline uint64_t element_bytes(uint32_t dtype) noexcept {
  switch (dtype) {
    case BITNET_DTYPE_F32:
    case BITNET_DTYPE_I32:
      return 4;
    case BITNET_DTYPE_F16:
      return 2;
    case BITNET_DTYPE_I8:
      return 1;
    default:
      return 0;
  }
}

// A set of roles of ports.
constexpr uint32_t role_bit(uint32_t role) noexcept {
  return 1u << role;
}
inline constexpr uint32_t known_roles = role_bit(BITNET_PORT_LARGEST + 1) - 2;
// Roles whose ports stand for a value of the graph.
inline constexpr uint32_t value_roles =
    role_bit(BITNET_PORT_VALUE_IN) | role_bit(BITNET_PORT_VALUE_OUT) | role_bit(BITNET_PORT_LOGITS);

struct graph {
  std::vector<bitnet_value> values;
  std::vector<bitnet_op> ops;
  std::vector<bitnet_port> ports;
  std::vector<bool> external;        // by value: the binding says where it lies
  uint32_t logits = BITNET_NONE;     // the value of BITNET_PORT_LOGITS
  uint32_t reads = 0;                // role_bit() of each port that an op reads
  uint64_t vocabulary = UINT64_MAX;  // rows of the smallest embedding: token ids are below it
  bool attends = false;
  bool windowed_layers = false;  // an ATTN_PAGED has a window of its own
  bool writes_kv = false;
  uint32_t kv_layers = 0;       // highest layer + 1
  uint64_t kv_width = 0;        // n_kv_heads * head_dim, 0 = no KV
  uint32_t n_kv_heads = 0;      // 0 = nothing attends
  uint32_t head_group = 0;      // most query heads that share a KV head
  uint64_t state_elements = 0;  // named by ops; 0 = no states
};

inline constexpr uint32_t most_in_graph = 1u << 20;  // values, ops, ports

// Copies the struct of a graph and checks that its counts are within bounds.
inline bitnet_status receive_graph(const bitnet_graph* g, bitnet_graph& out,
                                   const reporter& report) {
  if (bitnet_status s = receive(g, sizeof out, out, "graph", report); failed(s)) return s;
  if (out.reserved_0 != 0)
    return report.fail(BITNET_UNSUPPORTED, "reserved_0 of the graph is not 0; update the backend");
  if (out.n_values == 0 || out.n_ops == 0 || out.n_values > most_in_graph ||
      out.n_ops > most_in_graph || out.n_ports > most_in_graph)
    return report.fail(BITNET_INVALID_ARGUMENT,
                       "%u values, %u ops and %u ports; expected 1 to %u values and ops, and no "
                       "more ports than that",
                       out.n_values, out.n_ops, out.n_ports, most_in_graph);
  return BITNET_OK;
}

// Copies the ops of a graph without checking them.
inline bitnet_status read_ops(const bitnet_graph* g, std::vector<bitnet_op>& out,
                              const reporter& report) {
  bitnet_graph known{};
  if (bitnet_status s = receive_graph(g, known, report); failed(s)) return s;
  return receive_array(known.ops, known.op_size, known.n_ops, out, "op", report);
}

}  // namespace bitnet::sdk

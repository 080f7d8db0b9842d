#pragma once
// Builds the ops of a program: values, ops in order, composites before their bodies, ports.

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "bitnet/abi/program.h"

namespace bitnet::compute {

struct graph {
  std::vector<bitnet_value> values;
  std::vector<bitnet_op> ops;
  std::vector<bitnet_port> ports;

  uint32_t value(uint32_t dtype, int64_t rows, int64_t columns);
  bitnet_op& emit(uint32_t op, std::span<const uint32_t> inputs, std::span<const uint32_t> outputs,
                  std::span<const uint32_t> weights);
  bitnet_op& emit(uint32_t op, std::initializer_list<uint32_t> inputs,
                  std::initializer_list<uint32_t> outputs,
                  std::initializer_list<uint32_t> weights = {}) {
    return emit(op, std::span(inputs), std::span(outputs), std::span(weights));
  }

  // A composite stands before its body: begin() reserves its place, end() fills it in, drop()
  // removes it.
  std::size_t begin();
  void end(std::size_t at, uint32_t op, std::initializer_list<uint32_t> inputs,
           std::initializer_list<uint32_t> outputs);
  void drop(std::size_t at);

  // Adds a port for each step fact that an op reads.
  void add_facts();
  void add_port(uint32_t role, uint32_t value) { ports.push_back({role, value}); }
  // The value of the logits' port; BITNET_NONE if there is none.
  [[nodiscard]] uint32_t logits() const;

  [[nodiscard]] bitnet_graph view() const;  // borrows
};

// The name in BITNET_OP_LIST, lower case: "linear_ternary".
std::string op_name(uint32_t op);
std::string format_name(uint32_t format);  // "ternary2"

}  // namespace bitnet::compute

#pragma once
// Weights and a graph of the contract, put together op by op.

#include <random>
#include <span>
#include <string>
#include <vector>

#include "bitnet/abi/backend.h"

namespace bitnet::conformance {

struct model_tensor {
  bitnet_tensor_desc desc{};
  std::vector<uint8_t> data;
  std::vector<float> scales;
};

// One TERNARY2 row-major matrix from its values.
std::vector<uint8_t> pack_ternary(std::span<const int8_t> t, uint64_t k, uint64_t m);

class model {
 public:
  using indices = std::vector<uint32_t>;

  uint32_t value(uint32_t dtype, int64_t rows, int64_t width);
  // Refers into `ops`, until the next op comes.
  bitnet_op& op(uint32_t id, const indices& in, const indices& out, const indices& weights = {});
  // A tensor as described, its rank from m: norms and rope factors have one row and rank 1.
  uint32_t tensor(uint32_t format, int64_t k, int64_t m, std::vector<uint8_t> data,
                  std::vector<float> scales = {}, uint64_t scale_group = 0);
  uint32_t matrix_f32(int64_t k, int64_t m, std::span<const float> elements);
  // Random contents with scales of a usual size.
  uint32_t dense(uint32_t format, int64_t k, int64_t m, std::mt19937& random);
  uint32_t ternary(int64_t k, int64_t m, uint64_t scale_group, std::mt19937& random);

  // One for every fact of a step, whether an op reads it or not, those of more_ports, and one for
  // the logits.
  std::vector<bitnet_port> ports() const;
  bitnet_graph graph(const std::vector<bitnet_port>& ports) const;  // borrows
  std::vector<bitnet_tensor_desc> descs() const;

  std::vector<bitnet_value> values;
  std::vector<bitnet_op> ops;
  std::vector<model_tensor> tensors;
  uint32_t logits = 0;
  std::vector<bitnet_port> more_ports;  // before that for the logits
  // Of the KV pool that a program of it needs.
  uint32_t kv_layers = 1, kv_heads = 1, head_dim = 32;
  uint32_t state_elements = 0;  // 0: no states, and no port for them

  // 0 without logits.
  uint64_t vocabulary() const {
    return logits == BITNET_NONE ? 0 : static_cast<uint64_t>(values[logits].dims[1]);
  }
};

float uniform(std::mt19937& random, float low, float high);

}  // namespace bitnet::conformance

#pragma once
// The weights of a layer: names, shapes, and the member of struct layer that each fills.

#include <cstdint>
#include <vector>

#include "model/shape/shape.hpp"
#include "model/shape/weights.hpp"

namespace bitnet::model {

enum class weight_kind : uint8_t {
  norm,         // a vector
  matrix,       // of a linear layer
  convolution,  // k factors for each of m columns
  decays        // of k states: computed from the vectors ssm_a and ssm_dt.bias
};

// A member of struct layer and its tensor, blk.N.<name>.weight.
struct layer_weight {
  uint32_t layer::* index;
  const char* name;
  weight_kind kind;
  uint64_t k;
  uint64_t m = 1;
};

// Weights that several architectures share.
std::vector<layer_weight> attention_weights(const hyperparameters& shape);  // queries to output
std::vector<layer_weight> gated_weights(const hyperparameters& shape);      // the gated product
std::vector<layer_weight> head_norm_weights(const hyperparameters& shape);  // of queries and keys

// The weights of a llama's layer: norm, attention, norm, gated product.
std::vector<layer_weight> llama_weights(const hyperparameters& shape, uint32_t n);

void append(std::vector<layer_weight>& to, const std::vector<layer_weight>& more);

}  // namespace bitnet::model

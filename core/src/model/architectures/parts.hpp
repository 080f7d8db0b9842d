#pragma once
// The weights of a layer: names, shapes, and the member of struct layer that each fills.

#include <cstdint>
#include <vector>

#include "model/shape/shape.hpp"
#include "model/shape/weights.hpp"

namespace bitnet::model {

enum class part_kind : uint8_t {
  norm,         // a vector
  matrix,       // of a linear layer
  convolution,  // k factors for each of m columns
  decays        // of k states: computed from the vectors ssm_a and ssm_dt.bias
};

// A member of struct layer and its tensor, blk.N.<name>.weight.
struct part {
  uint32_t layer::* index;
  const char* name;
  part_kind kind;
  uint64_t k;
  uint64_t m = 1;
};

// Parts that several architectures share.
std::vector<part> attention_parts(const hyperparameters& h);  // queries to output
std::vector<part> gated_parts(const hyperparameters& h);      // the gated product
std::vector<part> head_norm_parts(const hyperparameters& h);  // of queries and keys

// The parts of a llama's layer: norm, attention, norm, gated product.
std::vector<part> llama_parts(const hyperparameters& h, uint32_t n);

void append(std::vector<part>& to, const std::vector<part>& more);

}  // namespace bitnet::model

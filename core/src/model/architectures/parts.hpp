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
  decays        // of k states: made of the vectors ssm_a and ssm_dt.bias
};

// One member of struct layer and the tensor that it comes from, blk.N.<name>.weight.
struct part {
  uint32_t layer::* index;
  const char* name;
  part_kind kind;
  uint64_t k;
  uint64_t m = 1;
};

// Pieces that several architectures have.
std::vector<part> attention_parts(const hyperparameters& h);  // queries to output
std::vector<part> gated_parts(const hyperparameters& h);      // the gated product
std::vector<part> head_norm_parts(const hyperparameters& h);  // of queries and keys

// Of each layer of a llama: norm, attention, norm, gated product.
std::vector<part> llama_parts(const hyperparameters& h, uint32_t n);

void append(std::vector<part>& to, const std::vector<part>& more);

}  // namespace bitnet::model

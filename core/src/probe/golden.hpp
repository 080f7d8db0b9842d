#pragma once
// Tiny programs whose results are whole numbers: one answer is right and every other is wrong, on
// any device and in any order of summation.
//
// How  Inputs are whole, and the largest of a row that is quantised is 127, so that quantising
//      changes nothing. Rows that are normed hold 1 and -1 only, so that their mean square is 1.
//      Every token is the first of its own sequence: rotating by position 0 changes nothing, and
//      the softmax of one score is 1.

#include <cstdint>
#include <string>
#include <vector>

#include "compute/graph/graph.hpp"

namespace bitnet::probe {

// Ternary rows of three groups, rows that are no multiple of a usual tile, and steps of one token
// and of several, which kernels treat differently.
constexpr uint32_t golden_tokens = 7, golden_block_tokens = 64;
constexpr uint32_t golden_steps[] = {1, golden_tokens};
constexpr uint32_t golden_kv_heads = 2, golden_head_dim = 64;

struct golden_weight {
  uint32_t format;  // BITNET_FORMAT_*; ternary ones have the scale 1
  uint32_t columns, rows;
  uint32_t rank;
  std::string bytes;
};

struct golden_program {
  std::string name;              // "linear_ternary.ternary2"
  std::vector<uint32_t> blamed;  // ops whose kernels a wrong result discredits
  std::vector<golden_weight> weights;
  compute::graph graph;
  uint32_t tokens = golden_tokens;  // of its longest step
  uint32_t columns = 0;             // of the logits (tokens, columns)
  double (*expected)(uint32_t token, uint32_t column) = nullptr;
};

// One for each family of kernels that whole numbers can test.
[[nodiscard]] std::vector<golden_program> golden_programs();
// A ternary product with more rows, so that the time of a step is that of its work.
[[nodiscard]] golden_program timed_program();
// Two large ternary products, one after the other, for up to this many tokens: enough work for a
// GPU. Its results are not whole numbers.
constexpr uint32_t timed_tokens = 64;
constexpr uint64_t large_timed_products = uint64_t{8192} * (384 + 2048);  // of a token
[[nodiscard]] golden_program large_timed_program();

}  // namespace bitnet::probe

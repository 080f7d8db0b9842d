#pragma once
// Golden programs, which the self-test of a backend runs: tiny ones with integer results, so that
// exactly one answer is right, on any device and in any order of summation. Some have fractions,
// which f32 holds as well. Only results of exponentials, and of a division that need not be exact,
// may be off, by `allowed`.
//
// How  Inputs are integers, and the largest of a quantised row is 127, or 127 times a power of two
//      in groups, so quantising changes nothing; only the programs of the quantisers round. Rows
//      that are normed hold only 1 and -1, so their mean square is 1. In programs without positions
//      or states every token is the first of its own sequence: rotating by position 0 changes
//      nothing, and the softmax of one score is 1. In the programs with a long context, which
//      rotate by angles of nearly 0, one score is so much larger than the others that the
//      exponentials of these are 0. Factors of groups and blocks are powers of two or small whole
//      numbers.

#include <cstdint>
#include <string>
#include <vector>

#include "compute/graph/graph.hpp"

namespace bitnet::probe {

// Ternary rows have three groups, numbers of rows are no multiple of a usual tile, and steps have
// one token or several, since kernels treat these differently.
constexpr uint32_t golden_tokens = 7, golden_block_tokens = 64;
constexpr uint32_t golden_steps[] = {1, golden_tokens};
constexpr uint32_t golden_kv_heads = 2, golden_head_dim = 64;
// Of the programs with a long context: one sequence, written by steps of so many tokens.
constexpr uint32_t golden_positions = 320, golden_prompt_tokens = 64;
// Of programs with a state: one sequence, written by steps of golden_steps.
constexpr uint32_t golden_state_positions = 2 * (1 + golden_tokens);

struct golden_weight {
  uint32_t format;  // BITNET_FORMAT_*
  uint32_t columns, rows;
  uint32_t rank;
  std::string bytes;
  // Of ternary ones: elements that share a factor, 0 for all, and the factors.
  uint32_t group = 0;
  std::vector<float> factors = {1};
};

struct golden_program {
  std::string name;              // "linear_ternary.ternary2"
  std::vector<uint32_t> blamed;  // ops whose kernels may cause a wrong result
  std::vector<golden_weight> weights;
  compute::graph graph;
  uint32_t tokens = golden_tokens;  // of the longest step
  uint32_t columns = 0;             // of the logits (tokens, columns)
  double (*expected)(uint32_t token, uint32_t column) = nullptr;
  uint32_t positions = 0;       // of the only sequence; 0: every token begins one
  uint32_t largest = 0;         // steps request so many logits of each row; 0: all
  uint32_t state_elements = 0;  // of the only sequence; 0: there is no state
  double allowed = 0;           // what a result may be off by, as a share of it
};

// One program per family of kernels that integers can test.
[[nodiscard]] std::vector<golden_program> golden_programs();
// A ternary product with more rows, so that its work dominates the time of a step.
[[nodiscard]] golden_program timed_program();
// Two large ternary products, one after the other, for up to timed_tokens tokens: enough work for a
// GPU. Its results are no integers.
constexpr uint32_t timed_tokens = 64;
constexpr uint64_t large_timed_products = uint64_t{8192} * (384 + 2048);  // of a token
[[nodiscard]] golden_program large_timed_program();

}  // namespace bitnet::probe

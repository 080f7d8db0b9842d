#pragma once
// One small program around one op, what it must give, and how far a right answer may be from that.
//
// Inputs come as rows of an f32 embedding, results leave as logits: the graph is embedding, op,
// gathered rows. Two inputs are two embeddings.
//
// Tolerances are derived from the number of roundings. A float operation rounds by at most `unit`
// relatively; GPUs divide within 2.5 units in the last place, take square roots within 3 and
// exponentials within 3 + 2|x| of them, one of which is 2 * unit.

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "model/model.hpp"

namespace bitnet::conformance {

inline constexpr double unit = 0x1p-24;
inline constexpr double ulp = 2 * unit;
// The bound of ops.h for a factor that is rounded to BITNET_PRECISION_*.
constexpr double unit_of(uint32_t precision) {
  switch (precision) {
    case BITNET_PRECISION_F32:
      return 0;
    case BITNET_PRECISION_BF16:
      return 0x1p-8;
    default:
      return 0x1p-11;
  }
}

struct op_case {
  uint32_t op = 0, format = BITNET_FORMAT_NONE;
  std::string why;
  uint32_t precisions = 0;  // that the program permits beside f32
  model graph;
  std::vector<int32_t> tokens;     // row of the embedding for each token
  std::vector<int32_t> positions;  // empty: 0, 1, 2 ...
  std::vector<int32_t> sequences;  // of each token; empty: all one
  std::vector<int32_t> outputs;    // token rows that want logits; empty: all

  // Of the logits, (outputs, width). allowed 0: the same bits as expected has in f32. An expected
  // NaN is any NaN.
  std::vector<double> expected, allowed;

  // The KV pool, for ops that use it.
  uint32_t dtype_k = BITNET_DTYPE_F16, dtype_v = BITNET_DTYPE_F16;
  uint32_t block_tokens = 4, max_blocks = 8;
  uint32_t window = 0, window_keep = 0;
  uint32_t own_window = 0;                            // of the op: ints[4] of ATTN_PAGED
  std::vector<std::vector<uint8_t>> blocks;           // imported before, in order of position
  std::vector<std::vector<uint8_t>> expected_blocks;  // exported afterwards, bit for bit
  // Of each sequence, where the graph has states: imported before, and exported afterwards with
  // what they may be off by.
  std::vector<std::vector<float>> states;
  std::vector<std::vector<double>> expected_states, allowed_states;
};

// A graph that reads `rows` of width k; returns the value that holds them.
uint32_t input_rows(model& m, int64_t k, const std::vector<float>& rows);
// Ends the graph with gathered rows of y.
void output_rows(model& m, uint32_t y);

// Lets a case's tokens be the rows 0 ... n - 1.
void all_rows(op_case& c, uint64_t n);

using op_cases = std::vector<op_case>;

// A case of the size of a real model. Made when its test runs: together they are gigabytes.
//
// What is long repeats a few patterns in an order without a period, so that the reference computes
// one answer for each pair of patterns and still judges every number: what comes from another place
// is another pattern, but for one time in `pattern_count`.
struct size_case {
  uint32_t op = 0, format = BITNET_FORMAT_NONE;
  std::string shape;  // the end of the test's name: "6912x2560"
  std::function<op_case()> make;
};
using size_cases = std::vector<size_case>;

inline constexpr uint64_t pattern_count = 61, input_count = 29;

// The pattern at place i of as many as there are; the first places have one each.
uint64_t pattern_at(uint64_t i, uint64_t patterns);
// `rows` rows of `bytes` each, of the patterns that `first` has.
std::vector<uint8_t> repeated(const std::vector<uint8_t>& first, uint64_t bytes, uint64_t rows);
// Random ternary weights of m rows of k, with a scale for every `group` of them (0: one for all)
// between `least` and `most`. Returns the tensor, of as many patterns as m and pattern_count allow.
uint32_t ternary_rows(model& m, uint64_t k, uint64_t rows, uint64_t group, float least, float most,
                      std::mt19937& random);
// Lets a case have n tokens, which are rows of the embedding's first `inputs`, and a KV pool for
// them.
void repeated_rows(op_case& c, uint64_t n, uint64_t inputs);

op_cases embed_gather_cases();
op_cases rms_norm_cases();
op_cases act_quant_cases();
op_cases linear_ternary_cases();
op_cases act_quant_grouped_cases();
op_cases linear_ternary_grouped_cases();
op_cases hadamard_cases();
op_cases linear_dense_cases();
// Of programs that permit this precision, BITNET_PRECISION_*, and may be as far off as it makes
// them.
op_cases rounded_dense_cases(uint32_t format, uint32_t precision);
op_cases rope_cases();
op_cases kv_write_cases(uint32_t kv_dtypes);
op_cases attn_paged_cases(uint32_t kv_dtypes, uint32_t attention_flags);
// The same as rounded_dense_cases().
op_cases rounded_attn_paged_cases(uint32_t kv_dtypes, uint32_t attention_flags, uint32_t precision);
op_cases elementwise_cases();
op_cases columns_cases();
op_cases short_conv_cases();
op_cases delta_gates_cases();
op_cases delta_rule_cases();
op_cases gather_rows_cases();

size_cases embed_gather_sizes();
size_cases rms_norm_sizes();
size_cases act_quant_sizes();
size_cases linear_ternary_sizes();
size_cases act_quant_grouped_sizes();
size_cases linear_ternary_grouped_sizes();
size_cases hadamard_sizes();
size_cases linear_dense_sizes();
size_cases rope_sizes();
size_cases kv_write_sizes();
size_cases attn_paged_sizes();
size_cases elementwise_sizes();
size_cases columns_sizes();
size_cases short_conv_sizes();
size_cases delta_gates_sizes();
size_cases delta_rule_sizes();
size_cases gather_rows_sizes();

// All of them.
size_cases all_sizes();

// Of one primitive and weight format; the last two as the device says them.
op_cases cases_of(uint32_t op, uint32_t format, uint32_t kv_dtypes, uint32_t attention_flags);

}  // namespace bitnet::conformance

// LINEAR_TERNARY: integer sums, then the scales in f32 in the order that ops.h says. Exact.

#include <algorithm>
#include <cmath>

#include "model/formats.hpp"
#include "reference/act_quant.hpp"
#include "reference/arithmetic.hpp"
#include "reference/op_case.hpp"

namespace bitnet::conformance {
namespace {

struct ternary_shape {
  int64_t k, m;
  uint64_t tokens, group;
  const char* why;
};

op_case ternary_case(const ternary_shape& s, bool extreme) {
  op_case c;
  c.op = BITNET_OP_LINEAR_TERNARY;
  c.format = BITNET_FORMAT_TERNARY2;
  c.why = s.why;
  std::mt19937 random(static_cast<uint32_t>(s.k * 131 + s.m));
  const auto k = static_cast<uint64_t>(s.k), m = static_cast<uint64_t>(s.m);
  std::vector<float> rows(k * s.tokens);
  for (float& x : rows) x = extreme ? 5.0f : uniform(random, -3, 3);
  const uint32_t x = input_rows(c.graph, s.k, rows);
  const uint32_t q = c.graph.value(BITNET_DTYPE_I8, BITNET_DIM_TOKENS, s.k);
  const uint32_t scale = c.graph.value(BITNET_DTYPE_F32, BITNET_DIM_TOKENS, 1);
  c.graph.op(BITNET_OP_ACT_QUANT_I8, {x}, {q, scale});
  const uint32_t y = c.graph.value(BITNET_DTYPE_F32, BITNET_DIM_TOKENS, s.m);
  uint32_t w = 0;
  if (extreme) {
    std::vector<int8_t> t(k * m);
    for (uint64_t i = 0; i < t.size(); ++i) t[i] = i / k % 2 == 0 ? 1 : -1;
    w = c.graph.tensor(BITNET_FORMAT_TERNARY2, s.k, s.m, pack_ternary(t, k, m), {0.5f});
  } else {
    w = c.graph.ternary(s.k, s.m, s.group, random);
  }
  c.graph.op(BITNET_OP_LINEAR_TERNARY, {q, scale}, {y}, {w});
  output_rows(c.graph, y);
  all_rows(c, s.tokens);
  for (uint64_t t = 0; t < s.tokens; ++t) {
    const quantised in = act_quant(std::span(rows).subspan(t * k, k));
    for (uint64_t r = 0; r < m; ++r)
      c.expected.push_back(static_cast<double>(ternary_result(c.graph.tensors[w], r, in)));
  }
  c.allowed.assign(c.expected.size(), 0);
  return c;
}

// Whole numbers that quantise to themselves: what is wrong here is not the quantiser's.
std::vector<float> codes(uint64_t k, uint64_t inputs, std::mt19937& random) {
  std::vector<float> out(k * inputs);
  for (uint64_t d = 0; d < inputs; ++d) {
    const float step = std::ldexp(1.0f, -static_cast<int>(d % 5));
    for (uint64_t i = 0; i < k; ++i)
      out[d * k + i] = step * static_cast<float>(static_cast<int>(random() % 253) - 126);
    out[d * k + (d == 0 ? k - 1 : random() % k)] = 127 * step;
  }
  return out;
}

op_case ternary_size(const ternary_shape& s) {
  op_case c;
  c.op = BITNET_OP_LINEAR_TERNARY;
  c.format = BITNET_FORMAT_TERNARY2;
  c.why = s.why;
  std::mt19937 random(static_cast<uint32_t>(s.k * 131 + s.m));
  const auto k = static_cast<uint64_t>(s.k), m = static_cast<uint64_t>(s.m);
  const uint64_t patterns = std::min(m, pattern_count), inputs = std::min(s.tokens, input_count);
  const std::vector<float> rows = codes(k, inputs, random);
  const uint32_t x = input_rows(c.graph, s.k, rows);
  const uint32_t q = c.graph.value(BITNET_DTYPE_I8, BITNET_DIM_TOKENS, s.k);
  const uint32_t scale = c.graph.value(BITNET_DTYPE_F32, BITNET_DIM_TOKENS, 1);
  c.graph.op(BITNET_OP_ACT_QUANT_I8, {x}, {q, scale});
  const uint32_t y = c.graph.value(BITNET_DTYPE_F32, BITNET_DIM_TOKENS, s.m);
  const uint32_t w = ternary_rows(c.graph, k, m, s.group, 0.01f, 0.06f, random);
  c.graph.op(BITNET_OP_LINEAR_TERNARY, {q, scale}, {y}, {w});
  output_rows(c.graph, y);
  repeated_rows(c, s.tokens, inputs);
  std::vector<double> answers;  // (inputs, patterns)
  for (uint64_t d = 0; d < inputs; ++d) {
    const quantised in = act_quant(std::span(rows).subspan(d * k, k));
    for (uint64_t p = 0; p < patterns; ++p)
      answers.push_back(static_cast<double>(ternary_result(c.graph.tensors[w], p, in)));
  }
  c.expected.reserve(s.tokens * m);
  for (const int32_t d : c.tokens)
    for (uint64_t r = 0; r < m; ++r)
      c.expected.push_back(answers[static_cast<uint64_t>(d) * patterns + pattern_at(r, patterns)]);
  c.allowed.assign(c.expected.size(), 0);
  return c;
}

}  // namespace

size_cases linear_ternary_sizes() {
  // Two dimensions at a time are as large as in a model: all three would take minutes.
  const struct {
    const char* name;
    ternary_shape s;
  } rows[] = {
      {"6912x2560", {2560, 6912, 3, 0, "gate and up of BitNet b1.58 2B"}},
      {"2560x6912", {6912, 2560, 3, 0, "its down"}},
      {"6911x2561", {2561, 6911, 2, 0, "odd sizes beside them"}},
      {"2559x6913", {6913, 2559, 1, 0, "odd sizes beside them, one token"}},
      {"6912_rows_512_tokens", {32, 6912, 512, 0, "a long prompt, many rows"}},
      {"701_rows_513_tokens", {129, 701, 513, 0, "one past a long prompt"}},
      {"6912_columns_512_tokens", {6912, 17, 512, 0, "a long prompt, wide rows"}},
      {"128256x2560", {2560, 128256, 1, 0, "a ternary head"}},
      {"128257_rows", {130, 128257, 2, 0, "an odd one"}},
      {"2560x6912_groups", {6912, 2560, 2, 256, "scale groups of 256"}},
      {"705_rows_512_tokens_groups", {128, 705, 512, 32, "scale groups of 32, a long prompt"}},
  };
  size_cases out;
  for (const auto& row : rows)
    out.push_back({BITNET_OP_LINEAR_TERNARY, BITNET_FORMAT_TERNARY2, row.name,
                   [s = row.s] { return ternary_size(s); }});
  return out;
}

op_cases linear_ternary_cases() {
  const ternary_shape shapes[] = {
      {1, 1, 1, 0, "one element"},
      {7, 3, 2, 0, "less than a byte of each lane"},
      {32, 16, 1, 0, "a quarter of a group of 128"},
      {100, 5, 3, 0, "a row that is padded"},
      {127, 17, 2, 0, "one short of a group"},
      {128, 1, 1, 0, "one row"},
      {128, 44, 7, 0, "rows that are no multiple of a tile"},
      {129, 4, 1, 0, "one past a group"},
      {200, 33, 5, 0, "an odd tail"},
      {384, 64, 16, 0, "sixteen tokens"},
      {640, 128, 2, 0, "five groups"},
      {2560, 20, 1, 0, "the width of BitNet b1.58 2B"},
      {6912, 3, 2, 0, "its feed-forward width"},
      {128, 9, 3, 32, "scale groups of 32"},
      {256, 20, 5, 64, "scale groups of 64"},
      {512, 17, 1, 256, "scale groups of 256"},
      {96, 6, 2, 96, "one scale for each row"},
      {128, 300, 5, 0, "many rows"},
      {192, 66, 5, 64, "three scale groups of 64"},
      {384, 9, 5, 128, "scale groups of 128"},
      {200, 2, 5, 200, "one scale for each row, which is padded"},
  };
  op_cases out;
  for (const ternary_shape& s : shapes) out.push_back(ternary_case(s, false));
  out.push_back(ternary_case({8192, 2, 2, 0, "the largest sums of 8192 codes"}, true));
  return out;
}

}  // namespace bitnet::conformance

// ROPE: pairs of a head turn by position * factor * base^(-2i/n).

#include <cmath>

#include "model/formats.hpp"
#include "reference/arithmetic.hpp"
#include "reference/op_case.hpp"

namespace bitnet::conformance {
namespace {

struct turning {
  int32_t heads, head_dim, dims, mode;
  bool factors;
  const char* why;
};

op_case rope_case(const turning& s, std::vector<int32_t> positions = {0, 1, 5, 100, 1000, 4095}) {
  op_case c;
  c.op = BITNET_OP_ROPE;
  c.why = s.why;
  c.block_tokens = 64;
  c.max_blocks = 64;
  c.positions = std::move(positions);
  const uint64_t tokens = c.positions.size();
  const int64_t k = int64_t{s.heads} * s.head_dim;
  const auto width = static_cast<uint64_t>(k);
  std::mt19937 random(static_cast<uint32_t>(k + s.mode));
  std::vector<float> rows(width * tokens);
  for (float& x : rows) x = uniform(random, -2, 2);
  const uint32_t x = input_rows(c.graph, k, rows);
  const uint32_t y = c.graph.value(BITNET_DTYPE_F32, BITNET_DIM_TOKENS, k);
  const uint32_t w =
      s.factors ? c.graph.dense(BITNET_FORMAT_F32, s.dims / 2, 1, random) : BITNET_NONE;
  bitnet_op& op = c.graph.op(BITNET_OP_ROPE, {x}, {y}, {w});
  op.ints[0] = s.heads;
  op.ints[1] = s.head_dim;
  op.ints[2] = s.dims;
  op.ints[3] = s.mode;
  op.floats[0] = 10000.0f;
  op.floats[1] = 1.0f;
  output_rows(c.graph, y);
  all_rows(c, tokens);
  c.expected.resize(rows.size());
  c.allowed.resize(rows.size());
  const auto dims = static_cast<uint64_t>(s.dims), head_dim = static_cast<uint64_t>(s.head_dim);
  for (uint64_t at = 0; at < rows.size(); ++at) {
    const uint64_t i = at % head_dim, head = at - i, t = at / width;
    if (i >= dims) {  // copied
      c.expected[at] = static_cast<double>(rows[at]);
      continue;
    }
    const rope_pair pair = rope_pair_of(i, dims, s.mode);
    double angle = rope_angle(c.positions[t], 10000.0, pair.number, dims);
    if (s.factors) angle /= element(BITNET_FORMAT_F32, c.graph.tensors[w].data.data(), pair.number);
    const float a = rows[head + pair.first], b = rows[head + pair.second];
    c.expected[at] = turned(a, b, i == pair.first, angle);
    // An angle in f32: power 2 ulp, quotient by a factor 2.5, two products. Then sine and cosine
    // within 2^-11 absolutely on some GPUs is not enough: 4 ulp; two products, one sum.
    const double of_angle = (2 * ulp + 2.5 * ulp + 2 * unit) * std::fabs(angle);
    c.allowed[at] = (of_angle + 4 * ulp + 2 * unit) *
                    (std::fabs(static_cast<double>(a)) + std::fabs(static_cast<double>(b)));
  }
  return c;
}

}  // namespace

size_cases rope_sizes() {
  std::vector<int32_t> prompt(512), late(513);
  for (uint64_t t = 0; t < prompt.size(); ++t) prompt[t] = static_cast<int32_t>(4096 - 512 + t);
  for (uint64_t t = 0; t < late.size(); ++t) late[t] = static_cast<int32_t>(7 * t);
  const struct {
    const char* name;
    turning s;
    std::vector<int32_t> positions;
  } rows[] = {
      {"5x128_512_tokens", {5, 128, 128, BITNET_ROPE_NEOX, false, "a long prompt"}, prompt},
      {"3x64_513_tokens", {3, 64, 48, BITNET_ROPE_INTERLEAVED, true, "one past it"}, late},
      {"128x128", {128, 128, 128, BITNET_ROPE_NEOX, false, "many heads"}, {0, 4095, 77}},
      {"3x256", {3, 256, 256, BITNET_ROPE_NEOX, true, "long heads"}, {4095, 4094}},
  };
  size_cases out;
  for (const auto& row : rows)
    out.push_back({BITNET_OP_ROPE, BITNET_FORMAT_NONE, row.name,
                   [row] { return rope_case(row.s, row.positions); }});
  return out;
}

op_cases rope_cases() {
  const turning shapes[] = {
      {4, 32, 32, BITNET_ROPE_NEOX, false, "halves of a head"},
      {4, 32, 32, BITNET_ROPE_INTERLEAVED, false, "neighbours"},
      {20, 128, 128, BITNET_ROPE_NEOX, false, "heads of BitNet b1.58 2B"},
      {2, 64, 48, BITNET_ROPE_NEOX, false, "a part of the head"},
      {2, 64, 48, BITNET_ROPE_INTERLEAVED, true, "a part of the head, frequency factors"},
      {3, 100, 100, BITNET_ROPE_NEOX, true, "heads of 100, frequency factors"},
      {1, 2, 2, BITNET_ROPE_INTERLEAVED, false, "one pair"},
  };
  op_cases out;
  for (const turning& s : shapes) out.push_back(rope_case(s));
  return out;
}

}  // namespace bitnet::conformance

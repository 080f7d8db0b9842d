// HADAMARD: sums and differences, halves of a block first. Exact.

#include <cmath>
#include <span>

#include "reference/op_case.hpp"

namespace bitnet::conformance {
namespace {

enum class factors : uint8_t { none, first, last };

// H of 2n elements is {{H, H}, {H, -H}} of H of n elements.
void transform(std::span<float> x) {
  if (x.size() == 1) return;
  const std::size_t half = x.size() / 2;
  transform(x.first(half));
  transform(x.last(half));
  for (std::size_t i = 0; i < half; ++i) {
    const float a = x[i], b = x[half + i];
    x[i] = a + b;
    x[half + i] = a - b;
  }
}

struct hadamard_shape {
  int64_t k;
  uint64_t tokens;
  uint32_t block;
  factors with;
  std::string why;
};

op_case hadamard_case(const hadamard_shape& s) {
  op_case c;
  c.op = BITNET_OP_HADAMARD;
  c.why = s.why;
  const auto k = static_cast<uint64_t>(s.k);
  std::mt19937 random(static_cast<uint32_t>(k * 17 + s.block));
  std::vector<float> rows(k * s.tokens), weight(k);
  // Of all bits that a float has: sums of fewer bits are exact in any order.
  for (float& x : rows) x = uniform(random, -4, 4) / 3;
  for (float& x : weight) x = uniform(random, -4, 4) / 3;
  const uint32_t x = input_rows(c.graph, s.k, rows);
  const uint32_t y = c.graph.value(BITNET_DTYPE_F32, BITNET_DIM_TOKENS, s.k);
  bitnet_op& o = c.graph.op(BITNET_OP_HADAMARD, {x}, {y});
  o.ints[0] = static_cast<int32_t>(s.block);
  o.ints[1] =
      s.with == factors::last ? BITNET_HADAMARD_FACTORS_LAST : BITNET_HADAMARD_FACTORS_FIRST;
  if (s.with != factors::none) o.weights[0] = c.graph.matrix_f32(s.k, 1, weight);
  output_rows(c.graph, y);
  repeated_rows(c, s.tokens, s.tokens);
  const auto scale = static_cast<float>(1 / std::sqrt(static_cast<double>(s.block)));
  for (uint64_t i = 0; i < rows.size(); ++i)
    if (s.with == factors::first) rows[i] *= weight[i % k];
  for (uint64_t at = 0; at < rows.size(); at += s.block)
    transform(std::span(rows).subspan(at, s.block));
  for (uint64_t i = 0; i < rows.size(); ++i) {
    const float turned = rows[i] * scale;
    c.expected.push_back(
        static_cast<double>(s.with == factors::last ? turned * weight[i % k] : turned));
  }
  c.allowed.assign(c.expected.size(), 0);
  return c;
}

}  // namespace

size_cases hadamard_sizes() {
  size_cases out;
  for (const hadamard_shape& s :
       {hadamard_shape{17408, 3, 1024, factors::first, "17408_columns"},
        hadamard_shape{6912, 65, 256, factors::first, "6912_columns_65_tokens"},
        hadamard_shape{1024, 513, 512, factors::last, "1024_columns_513_tokens"},
        hadamard_shape{16384, 3, 8192, factors::first, "2_blocks_of_8192"},
        hadamard_shape{32768, 2, 16384, factors::last, "2_blocks_of_16384"},
        hadamard_shape{65536, 1, 65536, factors::none, "one_block_of_65536"}})
    out.push_back(
        {BITNET_OP_HADAMARD, BITNET_FORMAT_NONE, s.why, [s] { return hadamard_case(s); }});
  return out;
}

op_cases hadamard_cases() {
  op_cases out;
  for (const factors with : {factors::none, factors::first, factors::last})
    for (const uint32_t block : {2u, 4u, 8u, 16u, 32u, 64u, 128u, 1024u})
      for (const uint32_t blocks : {1u, 3u})
        out.push_back(hadamard_case({int64_t{block} * blocks, 3, block, with,
                                     std::to_string(blocks) + " of " + std::to_string(block) +
                                         (with == factors::none    ? ""
                                          : with == factors::first ? ", factors first"
                                                                   : ", factors last")}));
  return out;
}

}  // namespace bitnet::conformance

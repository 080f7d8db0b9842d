// LINEAR_DENSE: y = W x in any order of sums.

#include <cmath>

#include "model/formats.hpp"
#include "reference/op_case.hpp"

namespace bitnet::conformance {
namespace {

op_case dense_case(uint32_t format, int64_t k, int64_t m, uint64_t tokens, std::string why) {
  op_case c;
  c.op = BITNET_OP_LINEAR_DENSE;
  c.format = format;
  c.why = std::move(why);
  std::mt19937 random(format * 7919 + static_cast<uint32_t>(k));
  const auto width = static_cast<uint64_t>(k);
  std::vector<float> rows(width * tokens);
  for (float& x : rows) x = uniform(random, -2, 2);
  const uint32_t x = input_rows(c.graph, k, rows);
  const uint32_t y = c.graph.value(BITNET_DTYPE_F32, BITNET_DIM_TOKENS, m);
  const uint32_t w = c.graph.dense(format, k, m, random);
  c.graph.tensors[w].desc.rank = 2;
  c.graph.op(BITNET_OP_LINEAR_DENSE, {x}, {y}, {w});
  output_rows(c.graph, y);
  all_rows(c, tokens);
  // Any order of n products and n - 1 sums: n roundings on the longest path, each of them of a part
  // that is no larger than the sum of all sizes.
  const double roundings = static_cast<double>(k) * unit;
  for (uint64_t t = 0; t < tokens; ++t)
    for (uint64_t r = 0; r < static_cast<uint64_t>(m); ++r) {
      const uint8_t* row = c.graph.tensors[w].data.data() + r * row_bytes(format, width);
      double sum = 0, sizes = 0, slack = 0;
      for (uint64_t i = 0; i < width; ++i) {
        const auto v = static_cast<double>(rows[t * width + i]);
        const double product = element(format, row, i) * v;
        sum += product;
        sizes += std::fabs(product);
        slack += element_slack(format, row, i) * std::fabs(v);
      }
      c.expected.push_back(sum);
      c.allowed.push_back(roundings / (1 - roundings) * sizes + slack);
    }
  return c;
}

}  // namespace

op_cases linear_dense_cases() {
  op_cases out;
  for (const format& f : all_formats()) {
    if (f.id == BITNET_FORMAT_TERNARY2) continue;
    const int64_t block = f.block;
    out.push_back(dense_case(f.id, block, 3, 2, "one block"));
    out.push_back(dense_case(f.id, 512, 33, 5, "rows that are no multiple of a tile"));
    out.push_back(dense_case(f.id, 1280, 20, 1, "one token"));
    if (block == 1) {
      out.push_back(dense_case(f.id, 77, 17, 3, "an odd width"));
      out.push_back(dense_case(f.id, 130, 1, 16, "one row"));
    }
    if (block == 32) out.push_back(dense_case(f.id, 96, 17, 3, "three blocks"));
  }
  return out;
}

}  // namespace bitnet::conformance

// EMBED_GATHER: row tokens[t] of the table, decoded.

#include "model/formats.hpp"
#include "reference/op_case.hpp"

namespace bitnet::conformance {
namespace {

op_case embed_case(uint32_t format, int64_t k, int64_t rows, uint64_t scale_group,
                   std::string why) {
  op_case c;
  c.op = BITNET_OP_EMBED_GATHER;
  c.format = format;
  c.why = std::move(why);
  std::mt19937 random(format * 1000 + static_cast<uint32_t>(k));
  const bool ternary = format == BITNET_FORMAT_TERNARY2;
  const uint32_t table = ternary ? c.graph.ternary(k, rows, scale_group, random)
                                 : c.graph.dense(format, k, rows, random);
  c.graph.tensors[table].desc.rank = 2;
  const uint32_t x = c.graph.value(BITNET_DTYPE_F32, BITNET_DIM_TOKENS, k);
  c.graph.op(BITNET_OP_EMBED_GATHER, {}, {x}, {table});
  output_rows(c.graph, x);
  const auto last = static_cast<int32_t>(rows - 1);
  c.tokens = {last, 0, last, last / 2};  // the ends, and one twice
  const model_tensor& t = c.graph.tensors[table];
  const auto width = static_cast<uint64_t>(k);
  for (const int32_t token : c.tokens) {
    const auto r = static_cast<uint64_t>(token);
    const uint8_t* row = t.data.data() + r * row_bytes(format, width);
    for (uint64_t i = 0; i < width; ++i) {
      double value = element(format, row, i);
      if (ternary)
        value *=
            static_cast<double>(t.scales[scale_group == 0 ? 0 : (r * width + i) / scale_group]);
      c.expected.push_back(value);
      c.allowed.push_back(element_slack(format, row, i));
    }
  }
  return c;
}

}  // namespace

op_cases embed_gather_cases() {
  op_cases out;
  for (const format& f : all_formats()) {
    const bool ternary = f.id == BITNET_FORMAT_TERNARY2;
    const int64_t block = ternary ? 128 : f.block;
    out.push_back(embed_case(f.id, block, 5, 0, "one block"));
    out.push_back(embed_case(f.id, 3 * block, 33, 0, "three blocks"));
    if (block == 1) out.push_back(embed_case(f.id, 77, 7, 0, "an odd width"));
    if (ternary) {
      out.push_back(embed_case(f.id, 100, 7, 0, "a row that is padded"));
      out.push_back(embed_case(f.id, 256, 7, 64, "scale groups"));
    }
  }
  return out;
}

}  // namespace bitnet::conformance

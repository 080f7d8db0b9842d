// EMBED_GATHER: row tokens[t] of the table, decoded.

#include <algorithm>

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

op_case embed_size(uint32_t format, int64_t k, uint64_t rows, uint64_t tokens) {
  op_case c;
  c.op = BITNET_OP_EMBED_GATHER;
  c.format = format;
  std::mt19937 random(format * 1000 + static_cast<uint32_t>(k));
  const auto width = static_cast<uint64_t>(k);
  const uint64_t patterns = std::min(rows, pattern_count), bytes = row_bytes(format, width);
  const bool ternary = format == BITNET_FORMAT_TERNARY2;
  model some;  // the patterns
  const auto few = static_cast<int64_t>(patterns);
  const uint32_t first =
      ternary ? some.ternary(k, few, 0, random) : some.dense(format, k, few, random);
  const model_tensor& t = some.tensors[first];
  const uint32_t table = c.graph.tensor(format, k, static_cast<int64_t>(rows),
                                        repeated(t.data, bytes, rows), t.scales);
  c.graph.tensors[table].desc.rank = 2;
  const uint32_t x = c.graph.value(BITNET_DTYPE_F32, BITNET_DIM_TOKENS, k);
  c.graph.op(BITNET_OP_EMBED_GATHER, {}, {x}, {table});
  output_rows(c.graph, x);
  repeated_rows(c, tokens, 1);
  // All over the table, and its last row.
  for (uint64_t i = 0; i < tokens; ++i)
    c.tokens[i] = static_cast<int32_t>(i == 0 ? rows - 1 : i * 7919 * 61 % rows);
  for (const int32_t token : c.tokens) {
    const uint8_t* row = t.data.data() + pattern_at(static_cast<uint64_t>(token), patterns) * bytes;
    for (uint64_t i = 0; i < width; ++i) {
      const double scale = ternary ? static_cast<double>(t.scales[0]) : 1;
      c.expected.push_back(element(format, row, i) * scale);
      c.allowed.push_back(element_slack(format, row, i));
    }
  }
  return c;
}

}  // namespace

size_cases embed_gather_sizes() {
  size_cases out;
  for (const format& f : all_formats()) {
    const int64_t narrow = f.block == 256 ? 256 : 64;
    const struct {
      const char* name;
      int64_t k;
      uint64_t rows, tokens;
    } rows[] = {{"128256_rows_512_tokens", narrow, 128256, 512},
                {"128257_rows_513_tokens", narrow, 128257, 513},
                {"2560_columns", 2560, 1031, 40},
                {"6912_columns", 6912, 67, 9}};
    for (const auto& row : rows)
      out.push_back({BITNET_OP_EMBED_GATHER, f.id, row.name,
                     [row, id = f.id] { return embed_size(id, row.k, row.rows, row.tokens); }});
  }
  return out;
}

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
      out.push_back(embed_case(f.id, 200, 6, 40, "scale groups of 40"));
    }
  }
  return out;
}

}  // namespace bitnet::conformance

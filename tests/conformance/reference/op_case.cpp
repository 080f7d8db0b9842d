#include "reference/op_case.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "model/formats.hpp"

namespace bitnet::conformance {

uint32_t input_rows(model& m, int64_t k, const std::vector<float>& rows) {
  const uint32_t table = m.matrix_f32(k, static_cast<int64_t>(rows.size()) / k, rows);
  const uint32_t x = m.value(BITNET_DTYPE_F32, BITNET_DIM_TOKENS, k);
  m.op(BITNET_OP_EMBED_GATHER, {}, {x}, {table});
  return x;
}

void output_rows(model& m, uint32_t y) {
  m.logits = m.value(BITNET_DTYPE_F32, BITNET_DIM_OUTPUTS, m.values[y].dims[1]);
  m.op(BITNET_OP_GATHER_ROWS, {y}, {m.logits});
}

void all_rows(op_case& c, uint64_t n) {
  c.tokens.resize(n);
  std::iota(c.tokens.begin(), c.tokens.end(), 0);
}

uint64_t pattern_at(uint64_t i, uint64_t patterns) {
  if (i < patterns || patterns == 0) return i;
  const uint64_t mixed = i * 0x9e3779b97f4a7c15u;  // the golden ratio: high bits without a period
  return (mixed >> 32) % patterns;
}

std::vector<uint8_t> repeated(const std::vector<uint8_t>& first, uint64_t bytes, uint64_t rows) {
  std::vector<uint8_t> out(bytes * rows);
  for (uint64_t r = 0; r < rows; ++r)
    std::copy_n(first.begin() + static_cast<int64_t>(pattern_at(r, first.size() / bytes) * bytes),
                bytes, out.begin() + static_cast<int64_t>(r * bytes));
  return out;
}

uint32_t ternary_rows(model& m, uint64_t k, uint64_t rows, uint64_t group, float least, float most,
                      std::mt19937& random) {
  const uint64_t patterns = std::min(rows, pattern_count);
  std::vector<int8_t> trits(k * patterns);
  for (int8_t& t : trits) t = static_cast<int8_t>(static_cast<int>(random() % 3) - 1);
  const uint64_t groups = group == 0 ? 0 : k / group;
  std::vector<float> scales(std::max<uint64_t>(1, groups * patterns));
  for (float& v : scales) v = uniform(random, least, most);
  if (groups != 0) {
    const std::vector<float> some = std::exchange(scales, {});
    for (uint64_t r = 0; r < rows; ++r)
      for (uint64_t g = 0; g < groups; ++g)
        scales.push_back(some[pattern_at(r, patterns) * groups + g]);
  }
  return m.tensor(
      BITNET_FORMAT_TERNARY2, static_cast<int64_t>(k), static_cast<int64_t>(rows),
      repeated(pack_ternary(trits, k, patterns), row_bytes(BITNET_FORMAT_TERNARY2, k), rows),
      std::move(scales), group);
}

void repeated_rows(op_case& c, uint64_t n, uint64_t inputs) {
  for (uint64_t t = 0; t < n; ++t) c.tokens.push_back(static_cast<int32_t>(pattern_at(t, inputs)));
  c.block_tokens = 64;
  c.max_blocks = static_cast<uint32_t>((n + c.block_tokens - 1) / c.block_tokens);
}

size_cases all_sizes() {
  size_cases out;
  for (size_cases (*some)() :
       {embed_gather_sizes, rms_norm_sizes, act_quant_sizes, linear_ternary_sizes,
        act_quant_grouped_sizes, linear_ternary_grouped_sizes, hadamard_sizes, linear_dense_sizes,
        rope_sizes, kv_write_sizes, attn_paged_sizes, elementwise_sizes, columns_sizes,
        short_conv_sizes, delta_gates_sizes, delta_rule_sizes, gather_rows_sizes})
    for (size_case& c : some()) out.push_back(std::move(c));
  return out;
}

op_cases cases_of(uint32_t op, uint32_t format, uint32_t kv_dtypes, uint32_t attention_flags) {
  const auto all = [&]() -> op_cases {
    switch (op) {
      case BITNET_OP_EMBED_GATHER:
        return embed_gather_cases();
      case BITNET_OP_RMS_NORM:
      case BITNET_OP_RMS_NORM_HEADS:
        return rms_norm_cases();
      case BITNET_OP_ACT_QUANT_I8:
        return act_quant_cases();
      case BITNET_OP_LINEAR_TERNARY:
        return linear_ternary_cases();
      case BITNET_OP_ACT_QUANT_I8_GROUPED:
        return act_quant_grouped_cases();
      case BITNET_OP_LINEAR_TERNARY_GROUPED:
        return linear_ternary_grouped_cases();
      case BITNET_OP_HADAMARD:
        return hadamard_cases();
      case BITNET_OP_LINEAR_DENSE:
        return linear_dense_cases();
      case BITNET_OP_ROPE:
        return rope_cases();
      case BITNET_OP_KV_WRITE:
        return kv_write_cases(kv_dtypes);
      case BITNET_OP_ATTN_PAGED:
        return attn_paged_cases(kv_dtypes, attention_flags);
      case BITNET_OP_COLUMNS:
        return columns_cases();
      case BITNET_OP_SHORT_CONV:
        return short_conv_cases();
      case BITNET_OP_DELTA_GATES:
        return delta_gates_cases();
      case BITNET_OP_DELTA_RULE:
        return delta_rule_cases();
      case BITNET_OP_GATHER_ROWS:
        return gather_rows_cases();
      default:
        return elementwise_cases();
    }
  };
  op_cases out = all();
  std::erase_if(out, [&](const op_case& c) { return c.op != op || c.format != format; });
  return out;
}

}  // namespace bitnet::conformance

#include "reference/op_case.hpp"

#include <algorithm>
#include <numeric>

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

op_cases cases_of(uint32_t op, uint32_t format, uint32_t kv_dtypes, bool windows) {
  const auto all = [&]() -> op_cases {
    switch (op) {
      case BITNET_OP_EMBED_GATHER:
        return embed_gather_cases();
      case BITNET_OP_RMS_NORM:
        return rms_norm_cases();
      case BITNET_OP_ACT_QUANT_I8:
        return act_quant_cases();
      case BITNET_OP_LINEAR_TERNARY:
        return linear_ternary_cases();
      case BITNET_OP_LINEAR_DENSE:
        return linear_dense_cases();
      case BITNET_OP_ROPE:
        return rope_cases();
      case BITNET_OP_KV_WRITE:
        return kv_write_cases(kv_dtypes);
      case BITNET_OP_ATTN_PAGED:
        return attn_paged_cases(kv_dtypes, windows);
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

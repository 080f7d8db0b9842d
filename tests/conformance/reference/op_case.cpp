#include "reference/op_case.hpp"

#include <algorithm>
#include <iterator>
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

op_cases all_cases(uint32_t kv_dtypes, bool windows) {
  op_cases out;
  for (op_cases& some : std::vector<op_cases>{
           embed_gather_cases(), rms_norm_cases(), act_quant_cases(), linear_ternary_cases(),
           linear_dense_cases(), rope_cases(), kv_write_cases(kv_dtypes),
           attn_paged_cases(kv_dtypes, windows), elementwise_cases(), gather_rows_cases()})
    std::ranges::move(some, std::back_inserter(out));
  return out;
}

}  // namespace bitnet::conformance

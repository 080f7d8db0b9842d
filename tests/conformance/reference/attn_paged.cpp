// ATTN_PAGED: softmax attention over imported blocks.

#include <algorithm>
#include <cmath>

#include "reference/kv_store.hpp"
#include "reference/op_case.hpp"

namespace bitnet::conformance {
namespace {

struct attending {
  uint32_t dtype_k, dtype_v, heads, kv_heads, head_dim;
  uint32_t block_tokens = 4;
  uint32_t window = 0, keep = 0;
  std::string why;
};

constexpr float score_scale = 0.125f;

bool sees(const attending& s, uint64_t position, uint64_t p) {
  return s.window == 0 || p + s.window > position || p < s.keep;
}

// One head of one token: result and what it may be off by, element by element.
void attend(const attending& s, const kv_layout& layout,
            const std::vector<std::vector<uint8_t>>& blocks, uint64_t position, uint64_t kv_head,
            std::span<const float> q, op_case& c) {
  std::vector<double> score, error;
  std::vector<const uint8_t*> values;
  const auto n = static_cast<double>(q.size());
  for (uint64_t p = 0; p <= position; ++p) {
    if (!sees(s, position, p)) continue;
    const uint8_t* block = blocks[p / s.block_tokens].data();
    const uint8_t* key = block + layout.at(false, 0, kv_head, p % s.block_tokens);
    double sum = 0, sizes = 0;
    for (uint64_t i = 0; i < q.size(); ++i) {
      const double product = kv_element(s.dtype_k, key, i) * static_cast<double>(q[i]);
      sum += product;
      sizes += std::fabs(product);
    }
    const double scale = static_cast<double>(score_scale);
    score.push_back(sum * scale);
    // Any order of the products; one more product by the scale, one difference to the largest.
    error.push_back((n + 2) * unit * sizes * scale);
    values.push_back(block + layout.at(true, 0, kv_head, p % s.block_tokens));
  }
  const double largest = *std::ranges::max_element(score);
  const double largest_error = *std::ranges::max_element(error);
  double sum = 0;
  for (const double x : score) sum += std::exp(x - largest);
  const auto count = static_cast<double>(score.size());
  for (uint64_t i = 0; i < q.size(); ++i) {
    double y = 0, off = 0, sizes = 0;
    for (uint64_t j = 0; j < score.size(); ++j) {
      const double part = std::exp(score[j] - largest) / sum * kv_element(s.dtype_v, values[j], i);
      y += part;
      sizes += std::fabs(part);
      // The exponential of a wrong score, and its own error.
      off += std::fabs(part) * (error[j] + (3 + 2 * (largest - score[j])) * ulp);
    }
    // The divisor is a sum of such exponentials too; then sums of `count` parts, a product and a
    // quotient.
    off += sizes * (largest_error + 3 * ulp + 2 * count * unit + unit + 2.5 * ulp) + off;
    c.expected.push_back(y);
    c.allowed.push_back(off + 1e-30);
  }
}

op_case attention_case(const attending& s) {
  op_case c;
  c.op = BITNET_OP_ATTN_PAGED;
  c.why = s.why;
  c.dtype_k = s.dtype_k;
  c.dtype_v = s.dtype_v;
  c.block_tokens = s.block_tokens;
  c.window = s.window;
  c.window_keep = s.keep;
  c.graph.kv_heads = s.kv_heads;
  c.graph.head_dim = s.head_dim;
  const uint64_t context = uint64_t{5} * s.block_tokens;
  c.positions = {0,
                 1,
                 static_cast<int32_t>(s.block_tokens) - 1,
                 static_cast<int32_t>(s.block_tokens),
                 static_cast<int32_t>(context) - 2,
                 static_cast<int32_t>(context) - 1};
  const uint64_t tokens = c.positions.size();
  const int64_t k = int64_t{s.heads} * s.head_dim;
  const auto width = static_cast<uint64_t>(k);
  std::mt19937 random(s.head_dim + s.heads * 1000 + s.dtype_k * 7 + s.dtype_v * 3 + s.window);
  std::vector<float> rows(width * tokens);
  for (float& x : rows) x = uniform(random, -2, 2);
  const uint32_t q = input_rows(c.graph, k, rows);
  const uint32_t y = c.graph.value(BITNET_DTYPE_F32, BITNET_DIM_TOKENS, k);
  bitnet_op& op = c.graph.op(BITNET_OP_ATTN_PAGED, {q}, {y});
  op.ints[1] = static_cast<int32_t>(s.heads);
  op.ints[2] = static_cast<int32_t>(s.kv_heads);
  op.ints[3] = static_cast<int32_t>(s.head_dim);
  op.floats[0] = score_scale;
  output_rows(c.graph, y);
  all_rows(c, tokens);

  const kv_layout layout{s.dtype_k, s.dtype_v, 1, s.kv_heads, s.head_dim, s.block_tokens};
  c.blocks.assign(context / s.block_tokens, std::vector<uint8_t>(layout.block_bytes()));
  for (uint64_t p = 0; p < context; ++p)
    for (uint64_t h = 0; h < s.kv_heads; ++h)
      for (const bool value : {false, true}) {
        std::vector<float> x(s.head_dim);
        for (float& v : x) v = uniform(random, -2, 2);
        std::ranges::copy(kv_pack(value ? s.dtype_v : s.dtype_k, x),
                          c.blocks[p / s.block_tokens].begin() +
                              static_cast<int64_t>(layout.at(value, 0, h, p % s.block_tokens)));
      }
  const uint64_t group = std::max(1u, s.heads / std::max(1u, s.kv_heads));
  for (uint64_t t = 0; t < tokens; ++t)
    for (uint64_t h = 0; h < s.heads; ++h)
      attend(s, layout, c.blocks, static_cast<uint64_t>(c.positions[t]), h / group,
             std::span<const float>(rows).subspan(t * width + h * s.head_dim, s.head_dim), c);
  return c;
}

}  // namespace

op_cases attn_paged_cases(uint32_t kv_dtypes, bool windows) {
  if (kv_dtypes == 0) kv_dtypes = 1u << BITNET_DTYPE_F32 | 1u << BITNET_DTYPE_F16;
  constexpr uint32_t f32 = BITNET_DTYPE_F32, f16 = BITNET_DTYPE_F16, q8 = BITNET_DTYPE_Q8_0;
  std::vector<attending> shapes = {
      {f32, f32, 4, 2, 32, 4, 0, 0, "keys and values f32"},
      {f16, f16, 4, 2, 32, 4, 0, 0, "keys and values f16"},
      {q8, q8, 4, 2, 32, 4, 0, 0, "keys and values q8_0"},
      {q8, f16, 4, 1, 64, 4, 0, 0, "keys q8_0, values f16"},
      {f16, f16, 1, 1, 100, 4, 0, 0, "a head of 100"},
      {f16, f16, 8, 2, 128, 16, 0, 0, "heads of BitNet b1.58 2B, blocks of 16"},
      {f16, f16, 5, 5, 64, 64, 0, 0, "as many KV heads as heads, blocks of 64"},
  };
  if (windows) {
    shapes.push_back({f16, f16, 4, 2, 32, 4, 1, 0, "a window of one"});
    shapes.push_back({f16, f16, 4, 2, 32, 4, 6, 2, "a window of six, two kept"});
    shapes.push_back({f32, f32, 4, 2, 32, 4, ~0u, 0, "a window of everything"});
  }
  op_cases out;
  for (const attending& s : shapes)
    if ((kv_dtypes >> s.dtype_k & 1) != 0 && (kv_dtypes >> s.dtype_v & 1) != 0)
      out.push_back(attention_case(s));
  return out;
}

}  // namespace bitnet::conformance

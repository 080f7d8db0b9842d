// KV_WRITE: rows stored at their slots in the pool's type, seen through kv_export.

#include <algorithm>
#include <cmath>
#include <span>

#include "reference/kv_store.hpp"
#include "reference/op_case.hpp"

namespace bitnet::conformance {
namespace {

struct storing {
  uint32_t dtype_k, dtype_v, layers, layer, heads, head_dim;
  std::string why;
  uint64_t tokens = 10, first = 0;  // written, and the position of the first of them
  uint32_t block_tokens = 4, blocks = 3;
};

// Tokens 1 to 4: scales that are subnormal in f16, numbers beyond it, neighbours of its roundings,
// and blocks with halves between codes, with two largest elements of which the first has the sign,
// and with a factor that rounds to 0 where that of the double does not.
void put_edges(std::span<float> rows, uint64_t width) {
  for (float& v : rows.subspan(width, width)) v *= 1e-7f;
  for (float& v : rows.subspan(2 * width, width)) v *= 1e30f;
  const float near[] = {65519.9f, 65504.0f, 6e-8f,   2.9e-8f,    3e-8f,
                        1e-30f,   -0.0f,    6.1e-5f, 1.0009766f, 2049.0f};
  std::ranges::copy(near, rows.begin() + static_cast<int64_t>(3 * width));
  const std::vector<float> blocks[] = {{-8, 0.5f, 1.5f, -0.5f, -1.5f, 6.5f, 7.5f, 8},
                                       {1, -3, 3, 2.0625f},
                                       {-2.3e-7f, 1e-7f, 2.3e-7f}};
  std::span<float> row = rows.subspan(4 * width, width);
  std::ranges::fill(row, 0.0f);
  for (const std::vector<float>& block : blocks) {
    std::ranges::copy(block, row.begin());
    if (row.size() < 64) break;  // a block of 32, and room for another
    row = row.subspan(32);
  }
}

op_case write_case(const storing& s) {
  op_case c;
  c.op = BITNET_OP_KV_WRITE;
  c.why = s.why;
  c.dtype_k = s.dtype_k;
  c.dtype_v = s.dtype_v;
  c.graph.kv_layers = s.layers;
  c.graph.kv_heads = s.heads;
  c.graph.head_dim = s.head_dim;
  c.block_tokens = s.block_tokens;
  c.max_blocks = std::max(c.max_blocks, s.blocks);
  const uint64_t tokens = s.tokens, blocks = s.blocks;
  const int64_t k = int64_t{s.heads} * s.head_dim;
  const auto width = static_cast<uint64_t>(k);
  std::mt19937 random(s.head_dim * 3 + s.dtype_k * 7 + s.dtype_v);
  std::vector<float> keys(width * tokens), values(width * tokens);
  for (float& x : keys) x = uniform(random, -4, 4);
  for (float& x : values) x = uniform(random, -0.01f, 0.01f);
  std::fill_n(keys.begin(), width, 0.0f);  // a token of zeros
  for (std::vector<float>* rows : {&keys, &values})
    if (tokens > 4) put_edges(*rows, width);
  if (tokens > 5 && kv_type_of(s.dtype_k).block == 1) keys[5 * width + 1] = HUGE_VALF;
  const uint32_t rk = input_rows(c.graph, k, keys), rv = input_rows(c.graph, k, values);
  c.graph.op(BITNET_OP_KV_WRITE, {rk, rv}, {}).ints[0] = static_cast<int32_t>(s.layer);
  output_rows(c.graph, rk);
  all_rows(c, tokens);
  for (uint64_t t = 0; t < tokens; ++t) c.positions.push_back(static_cast<int32_t>(s.first + t));
  for (const float x : keys) c.expected.push_back(static_cast<double>(x));
  c.allowed.assign(c.expected.size(), 0);

  const kv_layout layout{s.dtype_k, s.dtype_v, s.layers, s.heads, s.head_dim, c.block_tokens};
  c.blocks.assign(blocks, std::vector<uint8_t>(layout.block_bytes()));
  for (std::vector<uint8_t>& block : c.blocks)
    for (uint8_t& byte : block) byte = static_cast<uint8_t>(random() % 60);  // no NaN, no infinity
  c.expected_blocks = c.blocks;  // what is not written stays
  for (uint64_t t = 0; t < tokens; ++t)
    for (uint64_t h = 0; h < s.heads; ++h)
      for (const bool value : {false, true}) {
        const std::span<const float> row(value ? values : keys);
        const std::vector<uint8_t> packed = kv_pack(
            value ? s.dtype_v : s.dtype_k, row.subspan(t * width + h * s.head_dim, s.head_dim));
        const uint64_t at = s.first + t;
        std::ranges::copy(
            packed, c.expected_blocks[at / c.block_tokens].begin() +
                        static_cast<int64_t>(layout.at(value, s.layer, h, at % c.block_tokens)));
      }
  return c;
}

}  // namespace

size_cases kv_write_sizes() {
  constexpr uint32_t f32 = BITNET_DTYPE_F32, f16 = BITNET_DTYPE_F16, q8 = BITNET_DTYPE_Q8_0,
                     q4 = BITNET_DTYPE_Q4_0;
  const struct {
    const char* name;
    storing s;
  } rows[] = {
      {"512_tokens_f16", {f16, f16, 1, 0, 5, 128, "", 512, 3584, 64, 64}},
      {"513_tokens_f32", {f32, f32, 1, 0, 2, 32, "", 513, 3583, 16, 256}},
      {"512_tokens_q8_0", {q8, q8, 1, 0, 2, 64, "", 512, 3584, 16, 256}},
      {"512_tokens_q4_0", {q4, q4, 1, 0, 2, 64, "", 512, 3584, 16, 256}},
      {"30_layers", {f16, f16, 30, 29, 5, 128, "", 7, 60, 16, 5}},
      {"32_heads", {f16, f16, 2, 1, 32, 100, "", 5, 3, 4, 3}},
      {"heads_of_256", {f16, f16, 1, 0, 3, 256, "", 5, 3, 4, 3}},
  };
  size_cases out;
  for (const auto& row : rows)
    out.push_back(
        {BITNET_OP_KV_WRITE, BITNET_FORMAT_NONE, row.name, [s = row.s] { return write_case(s); }});
  return out;
}

op_cases kv_write_cases(uint32_t kv_dtypes) {
  op_cases out;
  for (const kv_type& k : all_kv_types)
    for (const kv_type& v : all_kv_types) {
      if (!keeps(kv_dtypes, k.dtype) || !keeps(kv_dtypes, v.dtype)) continue;
      out.push_back(write_case(
          {k.dtype, v.dtype, 1, 0, 2, 32, std::string("keys ") + k.name + ", values " + v.name}));
    }
  if (keeps(kv_dtypes, BITNET_DTYPE_F16)) {
    out.push_back(write_case(
        {BITNET_DTYPE_F16, BITNET_DTYPE_F16, 3, 1, 5, 64, "the second of three layers"}));
    out.push_back(write_case({BITNET_DTYPE_F16, BITNET_DTYPE_F16, 1, 0, 1, 100, "a head of 100"}));
  }
  for (const kv_type& k : all_kv_types)
    for (const kv_type& v : all_kv_types)
      if (k.block == 1 && v.block == 1 && keeps(kv_dtypes, k.dtype) && keeps(kv_dtypes, v.dtype))
        out.push_back(write_case({k.dtype, v.dtype, 2, 1, 3, 33, "odd heads"}));
  return out;
}

}  // namespace bitnet::conformance

// ATTN_PAGED: softmax attention over imported blocks, with windows of the step and of the op.

#include <algorithm>
#include <cmath>

#include "reference/attention.hpp"
#include "reference/kv_store.hpp"
#include "reference/op_case.hpp"

namespace bitnet::conformance {
namespace {

struct attending {
  uint32_t dtype_k, dtype_v, heads, kv_heads, head_dim;
  uint32_t block_tokens = 4;
  uint32_t window = 0, keep = 0;
  std::string why;
  uint32_t layers = 1, layer = 0;
  uint32_t own_window = 0;  // ints[4]
  uint32_t precision = BITNET_PRECISION_F32;
};

constexpr float score_scale = 0.125f;

bool sees(const attending& s, uint64_t position, uint64_t p) {
  if (s.own_window != 0 && position - p >= s.own_window) return false;
  return s.window == 0 || p + s.window > position || p < s.keep;
}

// One head of one token. keys and values are those of its KV head (positions, head_dim).
void attend(const attending& s, uint64_t position, const double* keys, const double* values,
            std::span<const float> q, op_case& c) {
  std::vector<const double*> seen_keys, seen_values;
  for (uint64_t p = 0; p <= position; ++p) {
    if (!sees(s, position, p)) continue;
    seen_keys.push_back(keys + p * q.size());
    seen_values.push_back(values + p * q.size());
  }
  attend_head(q, seen_keys, seen_values, static_cast<double>(score_scale), c.expected, c.allowed,
              2 * unit_of(s.precision));
}

// The op between rows that are given and rows that are read, and the facts of a step for it.
void add_attention(op_case& c, const attending& s, const std::vector<float>& rows) {
  c.op = BITNET_OP_ATTN_PAGED;
  if (s.precision != BITNET_PRECISION_F32) c.precisions = 1u << s.precision;
  c.why = s.why;
  c.dtype_k = s.dtype_k;
  c.dtype_v = s.dtype_v;
  c.block_tokens = s.block_tokens;
  c.window = s.window;
  c.window_keep = s.keep;
  c.own_window = s.own_window;
  c.graph.kv_layers = s.layers;
  c.graph.kv_heads = s.kv_heads;
  c.graph.head_dim = s.head_dim;
  const auto k = static_cast<int64_t>(s.heads) * s.head_dim;
  const uint32_t q = input_rows(c.graph, k, rows);
  const uint32_t y = c.graph.value(BITNET_DTYPE_F32, BITNET_DIM_TOKENS, k);
  bitnet_op& op = c.graph.op(BITNET_OP_ATTN_PAGED, {q}, {y});
  op.ints[0] = static_cast<int32_t>(s.layer);
  op.ints[1] = static_cast<int32_t>(s.heads);
  op.ints[2] = static_cast<int32_t>(s.kv_heads);
  op.ints[3] = static_cast<int32_t>(s.head_dim);
  op.ints[4] = static_cast<int32_t>(s.own_window);
  op.floats[0] = score_scale;
  output_rows(c.graph, y);
}

// A mean of thousands of values hides one of them. So the last head of each group sees one position
// more than all others together, whose key points where the head's row does: the token's own
// position for the first KV head, any before it for the others.
void let_keys_stand_out(const attending& s, uint64_t context, const std::vector<int32_t>& positions,
                        const std::vector<float>& rows, std::vector<float>& keys) {
  const uint64_t dim = s.head_dim, group = s.heads / s.kv_heads, width = s.heads * dim;
  for (uint64_t t = 0; t < positions.size(); ++t)
    for (uint64_t h = 0; h < s.kv_heads; ++h) {
      const auto own = static_cast<uint64_t>(positions[t]);
      const uint64_t seen = h == 0 ? own : (t * 2654435761u + h * 40503u) % (own + 1);
      // The last of the group's heads; so that |q|^2 a scale is about 12 whatever the width.
      const float* row = &rows[t * width + (h * group + group - 1) * dim];
      const float size = 72.0f / static_cast<float>(dim);
      for (uint64_t i = 0; i < dim; ++i) keys[(h * context + seen) * dim + i] = row[i] * size;
    }
}

// Packs keys or values (KV heads, positions, head_dim) into the blocks of a case; returns them as
// stored.
std::vector<double> fill_blocks(op_case& c, const attending& s, const kv_layout& layout,
                                uint64_t context, bool value, const std::vector<float>& numbers) {
  const uint64_t dim = s.head_dim;
  const uint32_t dtype = value ? s.dtype_v : s.dtype_k;
  std::vector<double> known;
  for (uint64_t h = 0; h < s.kv_heads; ++h)
    for (uint64_t p = 0; p < context; ++p) {
      const std::vector<uint8_t> packed =
          kv_pack(dtype, std::span(numbers).subspan((h * context + p) * dim, dim));
      for (uint64_t i = 0; i < dim; ++i) known.push_back(kv_element(dtype, packed.data(), i));
      std::ranges::copy(packed,
                        c.blocks[p / s.block_tokens].begin() +
                            static_cast<int64_t>(layout.at(value, s.layer, h, p % s.block_tokens)));
    }
  return known;
}

// Tokens at given positions of a sequence.
op_case attention_case(const attending& s, uint64_t context,
                       const std::vector<int32_t>& positions) {
  op_case c;
  c.positions = positions;
  c.max_blocks = static_cast<uint32_t>((context + s.block_tokens - 1) / s.block_tokens);
  const uint64_t tokens = positions.size(), dim = s.head_dim, group = s.heads / s.kv_heads;
  const uint64_t width = s.heads * dim;
  std::mt19937 random(s.head_dim + s.heads * 1000 + s.dtype_k * 7 + s.dtype_v * 3 + s.window +
                      s.own_window * 11);
  std::vector<float> rows(width * tokens);
  for (float& x : rows) x = uniform(random, -2, 2);
  add_attention(c, s, rows);
  all_rows(c, tokens);

  std::vector<float> keys(s.kv_heads * context * dim), values(keys.size());
  for (float& x : keys) x = uniform(random, -1, 1);
  for (float& x : values) x = uniform(random, -2, 2);
  let_keys_stand_out(s, context, positions, rows, keys);
  const kv_layout layout{s.dtype_k, s.dtype_v, s.layers, s.kv_heads, dim, s.block_tokens};
  c.blocks.assign(c.max_blocks, std::vector<uint8_t>(layout.block_bytes()));
  const std::vector<double> known_keys = fill_blocks(c, s, layout, context, false, keys);
  const std::vector<double> known_values = fill_blocks(c, s, layout, context, true, values);
  for (uint64_t t = 0; t < tokens; ++t)
    for (uint64_t h = 0; h < s.heads; ++h)
      attend(s, static_cast<uint64_t>(positions[t]), &known_keys[h / group * context * dim],
             &known_values[h / group * context * dim],
             std::span<const float>(rows).subspan(t * width + h * dim, dim), c);
  return c;
}

}  // namespace

size_cases attn_paged_sizes() {
  constexpr uint32_t f32 = BITNET_DTYPE_F32, f16 = BITNET_DTYPE_F16, q8 = BITNET_DTYPE_Q8_0,
                     q4 = BITNET_DTYPE_Q4_0;
  const std::vector<int32_t> far = {0,    1,    63,   64,   255,  256,  500,  501,  511, 512,
                                    1000, 1023, 1024, 1777, 2047, 2048, 3000, 4094, 4095};
  std::vector<int32_t> prompt(512), odd(513);
  for (uint64_t t = 0; t < prompt.size(); ++t) prompt[t] = static_cast<int32_t>(t);
  for (uint64_t t = 0; t < odd.size(); ++t) odd[t] = static_cast<int32_t>(30 + t);
  size_cases out;
  const auto add = [&](const char* name, const attending& s, uint64_t context,
                       const std::vector<int32_t>& positions) {
    out.push_back({BITNET_OP_ATTN_PAGED, BITNET_FORMAT_NONE, name, [s, context, positions, name] {
                     op_case c = attention_case(s, context, positions);
                     c.why = name;
                     return c;
                   }});
  };
  add("4096_positions_f16", {f16, f16, 4, 2, 64, 64, 0, 0, ""}, 4096, far);
  add("4096_positions_f32", {f32, f32, 2, 1, 32, 16, 0, 0, ""}, 4096, far);
  add("4096_positions_q8_0", {q8, q8, 4, 2, 64, 16, 0, 0, ""}, 4096, far);
  add("4096_positions_q4_0", {q4, q4, 4, 2, 64, 16, 0, 0, ""}, 4096, far);
  add("4095_positions_window", {f16, f16, 2, 1, 32, 16, 1000, 4, ""}, 4095,
      {999, 1000, 1004, 2047, 4093, 4094});
  add("4095_positions_layer_window", {f16, f16, 2, 1, 32, 16, 0, 0, "", 1, 0, 1024}, 4095,
      {1022, 1023, 1024, 2047, 4093, 4094});
  add("20x128", {f16, f16, 20, 5, 128, 16, 0, 0, ""}, 600, {0, 77, 598, 599});
  add("64x64", {f16, f16, 64, 8, 64, 16, 0, 0, ""}, 130, {129, 15});
  add("30_layers", {f16, f16, 4, 2, 32, 16, 0, 0, "", 30, 29}, 40, {39, 2});
  add("3x256", {f16, f16, 3, 3, 256, 16, 0, 0, ""}, 40, {39, 2});
  add("512_tokens", {f16, f16, 2, 1, 32, 16, 0, 0, ""}, 512, prompt);
  add("513_tokens", {f16, f16, 3, 3, 32, 32, 0, 0, ""}, 543, odd);
  return out;
}

op_cases attn_paged_cases(uint32_t kv_dtypes, uint32_t attention_flags) {
  constexpr uint32_t f32 = BITNET_DTYPE_F32, f16 = BITNET_DTYPE_F16, q8 = BITNET_DTYPE_Q8_0,
                     q4 = BITNET_DTYPE_Q4_0;
  std::vector<attending> shapes = {
      {f32, f32, 4, 2, 32, 4, 0, 0, "keys and values f32"},
      {f16, f16, 4, 2, 32, 4, 0, 0, "keys and values f16"},
      {q8, q8, 4, 2, 32, 4, 0, 0, "keys and values q8_0"},
      {q8, f16, 4, 1, 64, 4, 0, 0, "keys q8_0, values f16"},
      {q4, q4, 4, 2, 32, 4, 0, 0, "keys and values q4_0"},
      {q4, q8, 4, 1, 64, 4, 0, 0, "keys q4_0, values q8_0"},
      {f16, q4, 4, 1, 96, 4, 0, 0, "keys f16, values q4_0"},
      {f16, f16, 1, 1, 100, 4, 0, 0, "a head of 100"},
      {f16, f16, 2, 1, 32, 4, 0, 0, "the second of three layers", 3, 1},
      {f16, f16, 8, 2, 128, 16, 0, 0, "heads of BitNet b1.58 2B, blocks of 16"},
      {f16, f16, 5, 5, 64, 64, 0, 0, "as many KV heads as heads, blocks of 64"},
      {f32, f32, 1, 1, 1, 4, 0, 0, "a head of one element"},
      {f32, f32, 2, 1, 33, 32, 0, 0, "an odd head, many positions"},
      {f32, f32, 1, 1, 224, 4, 0, 0, "a wide head"},
  };
  const bool windows = (attention_flags & BITNET_ATTENTION_WINDOW) != 0;
  const bool own_windows = (attention_flags & BITNET_ATTENTION_LAYER_WINDOW) != 0;
  if (windows) {
    shapes.push_back({f16, f16, 4, 2, 32, 4, 1, 0, "a window of one"});
    shapes.push_back({f16, f16, 4, 2, 32, 4, 6, 2, "a window of six, two kept"});
    shapes.push_back({f32, f32, 4, 2, 32, 4, ~0u, 0, "a window of everything"});
    shapes.push_back({f32, f32, 2, 2, 16, 32, 37, 5, "a window that is no multiple of a block"});
  }
  const auto own = [&](uint32_t n, const char* why) {
    return attending{f16, f16, 4, 2, 32, 4, 0, 0, why, 1, 0, n};
  };
  if (own_windows) {
    shapes.push_back(own(1, "a layer's window of one"));
    shapes.push_back(own(4, "a layer's window of a block"));
    shapes.push_back(own(7, "a layer's window of seven"));
    shapes.push_back(own(INT32_MAX, "a layer's window of everything"));
    attending q8_pool = own(5, "a layer's window of five, q8_0");
    q8_pool.dtype_k = q8_pool.dtype_v = q8;
    shapes.push_back(q8_pool);
  }
  if (windows && own_windows) {
    attending both = own(6, "a layer's window of six within the step's of eleven, two kept");
    both.window = 11;
    both.keep = 2;
    shapes.push_back(both);
    both = own(9, "the step's window of five and some of those kept within a layer's of nine");
    both.window = 5;
    both.keep = 12;
    shapes.push_back(both);
  }
  op_cases out;
  for (const attending& s : shapes)
    if (keeps(kv_dtypes, s.dtype_k) && keeps(kv_dtypes, s.dtype_v)) {
      const auto block = static_cast<int32_t>(s.block_tokens), context = 5 * block;
      out.push_back(attention_case(s, static_cast<uint64_t>(context),
                                   {0, 1, block - 1, block, context - 2, context - 1}));
    }
  return out;
}

op_cases rounded_attn_paged_cases(uint32_t kv_dtypes, uint32_t attention_flags,
                                  uint32_t precision) {
  constexpr uint32_t f16 = BITNET_DTYPE_F16;
  std::vector<int32_t> prompt(40);
  for (uint64_t t = 0; t < prompt.size(); ++t) prompt[t] = static_cast<int32_t>(33 + t);
  std::vector<attending> shapes = {
      {f16, f16, 4, 2, 64, 16, 0, 0, "a prompt behind some context"},
      {f16, f16, 8, 2, 128, 16, 0, 0, "heads of BitNet b1.58 2B"},
      {f16, f16, 2, 1, 256, 16, 0, 0, "wide heads"},
  };
  if ((attention_flags & BITNET_ATTENTION_WINDOW) != 0)
    shapes.push_back({f16, f16, 3, 1, 40, 16, 21, 2, "a window, two kept, three heads to one"});
  op_cases out;
  if (!keeps(kv_dtypes, f16)) return out;
  for (attending& s : shapes) {
    s.precision = precision;
    out.push_back(attention_case(s, 73, prompt));
  }
  return out;
}

}  // namespace bitnet::conformance

// Programs of the ops of the first models (products, norms, attention, the feed-forward part, the
// output head), and the list of all golden programs.

#include "probe/golden.hpp"

#include <algorithm>

#include "probe/golden_builder.hpp"
#include "probe/golden_programs.hpp"

namespace bitnet::probe::golden {
namespace {

constexpr uint32_t n_rows = 44;  // no multiple of a usual tile
// Backends that look for the largest logits only do so in heads of more than a thousand rows.
constexpr uint32_t n_head_rows = 1100, n_largest = 40;
// As many as in any later program, so that this program is the first to show a wrong product.
constexpr uint32_t n_ternary_rows = 404;
constexpr uint32_t n_heads = 4, q_width = n_heads * golden_head_dim;
constexpr uint32_t kv_width = golden_kv_heads * golden_head_dim, ff_width = 256;

int small(uint32_t row, uint32_t k) {
  return static_cast<int>((row * 5 + k * 3 + row * k / 3) % 7) - 3;
}
// Without a pattern, so that few rows of a head have the same logit.
int scattered(uint32_t row, uint32_t k) {
  return static_cast<int>(mixed(row, k) % 7) - 3;
}
// The position, up to its own, whose value a token is to find.
uint32_t sought(uint32_t token) {
  return (token * 2654435761U >> 8) % (token + 1);
}
// A key of signs, what is sought of it, large enough that every other score is at least 200 less,
// and a value. The largest element is 127.
constexpr uint32_t key_column = 0, query_column = 64, stored_column = 128, largest_column = 256;
int remembered(uint32_t token, uint32_t k) {
  if (k < query_column) return sign(token, k - key_column);
  if (k < stored_column) return 64 * sign(sought(token), k - query_column);
  if (k < largest_column) return activation(token, k) % 126;
  return k == largest_column ? 127 : 0;
}

// The same, but queries are signs: a norm of them and its weights make them what is sought.
int remembered_signs(uint32_t token, uint32_t k) {
  const bool of_query = k >= query_column && k < stored_column;
  return of_query ? sign(sought(token), k - query_column) : remembered(token, k);
}
// By which products change signs of queries and keys, and weights of norms change them back.
int flip(uint32_t element) {
  return element % 2 == 0 ? 1 : -1;
}
int query_norm(uint32_t, uint32_t k) {
  return 64 * flip(k);
}
int key_norm(uint32_t, uint32_t k) {
  return flip(k / 2);
}

// Rows that select one input each; the first row for values selects the largest.
uint32_t value_column(uint32_t row) {
  return row == 0 ? 1 : row * 5 % width;
}
uint32_t gate_column(uint32_t row) {
  return 3 * (row % (width / 3));
}
uint32_t up_column(uint32_t row) {
  return row == 0 ? 1 : row * 7 % width;
}
uint32_t key_of(uint32_t row) {
  return key_column + row % golden_head_dim;
}
uint32_t query_of(uint32_t row) {
  return query_column + row % golden_head_dim;
}
uint32_t stored_of(uint32_t row) {
  return stored_column + row;
}
int flipped_query(uint32_t row, uint32_t k) {
  return flip(row) * pick<query_of>(row, k);
}
int flipped_key(uint32_t row, uint32_t k) {
  return flip(row / 2) * pick<key_of>(row, k);
}

int64_t normed(uint32_t token, uint32_t k) {
  return int64_t{sign(token, k)} * norm_weight(0, k);
}

golden_program linear_ternary() {
  builder b("linear_ternary.ternary2", activation);
  const uint32_t y =
      b.linear(b.quantise(b.x, width), n_ternary_rows, b.ternary(width, n_ternary_rows, trit));
  return b.gathered(y, n_ternary_rows, {BITNET_OP_LINEAR_TERNARY}, product<activation, trit>);
}

golden_program bit_linear() {
  builder b("bit_linear.ternary2", activation);
  const uint32_t w = b.ternary(width, n_rows, trit);
  const uint32_t y = b.composite(BITNET_OP_BIT_LINEAR, {b.x},
                                 [&] { return b.linear(b.quantise(b.x, width), n_rows, w); });
  return b.gathered(y, n_rows, {BITNET_OP_BIT_LINEAR}, product<activation, trit>);
}

golden_program linear_dense(const char* name, uint32_t format) {
  builder b(name, activation);
  const uint32_t y = b.value(n_rows);
  b.emit(BITNET_OP_LINEAR_DENSE, {b.x}, {y}, {b.matrix(format, width, n_rows, small)});
  return b.gathered(y, n_rows, {BITNET_OP_LINEAR_DENSE}, product<activation, small>);
}

golden_program add() {
  builder b("add", activation);
  return b.gathered(b.binary(BITNET_OP_ADD, b.x, b.x, width), width, {BITNET_OP_ADD},
                    [](uint32_t t, uint32_t k) { return 2.0 * activation(t, k); });
}
golden_program mul() {
  builder b("mul", activation);
  return b.gathered(
      b.binary(BITNET_OP_MUL, b.x, b.x, width), width, {BITNET_OP_MUL},
      [](uint32_t t, uint32_t k) { return 1.0 * activation(t, k) * activation(t, k); });
}
golden_program relu2() {
  builder b("relu2", activation);
  return b.gathered(b.unary(BITNET_OP_RELU2, b.x, width), width, {BITNET_OP_RELU2},
                    [](uint32_t t, uint32_t k) {
                      const double x = std::max(activation(t, k), 0);
                      return x * x;
                    });
}
golden_program rms_norm() {
  builder b("rms_norm", sign);
  return b.gathered(b.norm(b.x), width, {BITNET_OP_RMS_NORM},
                    [](uint32_t t, uint32_t k) { return static_cast<double>(normed(t, k)); });
}

// `turn`: of each position, in radians of the fastest pair.
uint32_t rotated(builder& b, uint32_t from, uint32_t heads, float turn = 1) {
  const uint32_t y = b.value(int64_t{heads} * golden_head_dim);
  bitnet_op& o = b.emit(BITNET_OP_ROPE, {from}, {y});
  o.ints[0] = static_cast<int32_t>(heads);
  o.ints[1] = o.ints[2] = golden_head_dim;
  o.ints[3] = BITNET_ROPE_NEOX;
  o.floats[0] = 10000;
  o.floats[1] = turn;
  return y;
}

golden_program rope() {
  builder b("rope", activation);
  return b.gathered(rotated(b, b.x, width / golden_head_dim), width, {BITNET_OP_ROPE},
                    [](uint32_t t, uint32_t k) { return 1.0 * activation(t, k); });
}

uint32_t attended(builder& b, uint32_t q) {
  const uint32_t y = b.value(q_width);
  bitnet_op& o = b.emit(BITNET_OP_ATTN_PAGED, {q}, {y});
  o.ints[1] = n_heads;
  o.ints[2] = golden_kv_heads;
  o.ints[3] = golden_head_dim;
  o.floats[0] = 0.125F;
  return y;
}

// One layer's attention: with one score per head, each head returns its value.
golden_program attention(const char* name, bool fused) {
  builder b(name, sign);
  const auto query = [&] {
    const auto in = b.quantise(b.norm(b.x), width);
    const uint32_t q = b.linear(in, q_width, b.ternary(width, q_width, trit));
    const uint32_t k = b.linear(in, kv_width, b.ternary(width, kv_width, trit));
    const uint32_t v = b.linear(in, kv_width, b.ternary(width, kv_width, pick<value_column>));
    const uint32_t rq = rotated(b, q, n_heads);
    b.emit(BITNET_OP_KV_WRITE, {rotated(b, k, golden_kv_heads), v}, {});
    return rq;
  };
  const uint32_t q = fused ? b.composite(BITNET_OP_QKV_ROPE_KV, {b.x}, query) : query();
  const auto output = [&] {
    const uint32_t a = attended(b, q);
    const uint32_t y = b.linear(b.quantise(a, q_width), width, b.ternary(q_width, width, trit));
    return b.binary(BITNET_OP_ADD, b.x, y, width);
  };
  const uint32_t y = fused ? b.composite(BITNET_OP_ATTN_OUT, {q, b.x}, output) : output();
  const std::vector<uint32_t> blamed =
      fused ? std::vector<uint32_t>{BITNET_OP_QKV_ROPE_KV, BITNET_OP_ATTN_OUT}
            : std::vector<uint32_t>{BITNET_OP_KV_WRITE, BITNET_OP_ATTN_PAGED};
  return b.gathered(y, width, blamed, [](uint32_t t, uint32_t row) {
    int64_t sum = sign(t, row);
    for (uint32_t c = 0; c < q_width; ++c) {
      const uint32_t head = c / golden_head_dim, kv_head = head / (n_heads / golden_kv_heads);
      const uint32_t from = kv_head * golden_head_dim + c % golden_head_dim;
      sum += normed(t, value_column(from)) * trit(row, c);
    }
    return static_cast<double>(sum);
  });
}

// The gate is 1 or -1, so its squared ReLU is 1 or 0.
golden_program feed_forward() {
  builder b("ffn_relu2_gated.ternary2", sign);
  const uint32_t y = b.composite(BITNET_OP_FFN_RELU2_GATED, {b.x}, [&] {
    const auto in = b.quantise(b.norm(b.x), width);
    const uint32_t gate = b.linear(in, ff_width, b.ternary(width, ff_width, pick<gate_column>));
    const uint32_t up = b.linear(in, ff_width, b.ternary(width, ff_width, pick<up_column>));
    const uint32_t active = b.unary(BITNET_OP_RELU2, gate, ff_width);
    const uint32_t g = b.binary(BITNET_OP_MUL, active, up, ff_width);
    const uint32_t down =
        b.linear(b.quantise(g, ff_width), width, b.ternary(ff_width, width, trit));
    return b.binary(BITNET_OP_ADD, b.x, down, width);
  });
  return b.gathered(y, width, {BITNET_OP_FFN_RELU2_GATED}, [](uint32_t t, uint32_t row) {
    int64_t sum = sign(t, row);
    for (uint32_t r = 0; r < ff_width; ++r)
      if (normed(t, gate_column(r)) > 0) sum += normed(t, up_column(r)) * trit(row, r);
    return static_cast<double>(sum);
  });
}

uint32_t normed_heads(builder& b, uint32_t from, uint32_t heads, element weight) {
  const uint32_t y = b.value(int64_t{heads} * golden_head_dim);
  bitnet_op& o = b.emit(BITNET_OP_RMS_NORM_HEADS, {from}, {y},
                        {b.matrix(BITNET_FORMAT_F32, golden_head_dim, 1, weight, 1)});
  o.ints[0] = static_cast<int32_t>(heads);
  o.floats[0] = 1e-9F;  // too small to change a mean square of 1
  return y;
}

// Steps of many tokens write the keys and values of one sequence; any step reads what earlier ones
// wrote. Queries and keys, whose elements are at least 1, are rotated by angles of at most 1e-27,
// which changes no bit of them: GPU backends have a kernel for steps of one token that does all of
// RoPE, KV_WRITE and ATTN_PAGED.
// With norms of heads, too: their rows are signs, so their mean square is 1.
golden_program long_attention(const char* name, bool norms) {
  constexpr float no_turn = 1e-30F;
  builder b(name, norms ? remembered_signs : remembered, golden_positions);
  const auto in = b.quantise(b.x, width);
  uint32_t q =
      b.linear(in, q_width, b.ternary(width, q_width, norms ? flipped_query : pick<query_of>));
  uint32_t k =
      b.linear(in, kv_width, b.ternary(width, kv_width, norms ? flipped_key : pick<key_of>));
  const uint32_t v = b.linear(in, kv_width, b.ternary(width, kv_width, pick<stored_of>));
  if (norms) {
    q = normed_heads(b, q, n_heads, query_norm);
    k = normed_heads(b, k, golden_kv_heads, key_norm);
  }
  const uint32_t rq = rotated(b, q, n_heads, no_turn);
  b.emit(BITNET_OP_KV_WRITE, {rotated(b, k, golden_kv_heads, no_turn), v}, {});
  const uint32_t y = attended(b, rq);
  golden_program out =
      b.gathered(y, q_width, {BITNET_OP_ATTN_PAGED}, [](uint32_t t, uint32_t column) {
        const uint32_t kv_head = column / golden_head_dim / (n_heads / golden_kv_heads);
        const uint32_t row = kv_head * golden_head_dim + column % golden_head_dim;
        return static_cast<double>(remembered(sought(t), stored_of(row)));
      });
  out.tokens = golden_prompt_tokens;
  out.positions = golden_positions;
  return out;
}

template <element Weight>
double normed_product(uint32_t token, uint32_t row) {
  int64_t sum = 0;
  for (uint32_t k = 0; k < width; ++k) sum += normed(token, k) * Weight(row, k);
  return static_cast<double>(sum);
}

template <element Weight>
golden_program head(const char* name, uint32_t rows_of_head) {
  builder b(name, sign);
  const uint32_t w = b.matrix(BITNET_FORMAT_F16, width, rows_of_head, Weight);
  const uint32_t logits = b.composite(BITNET_OP_LM_HEAD, {b.x}, [&] {
    const uint32_t rows = b.value(width, BITNET_DTYPE_F32, BITNET_DIM_OUTPUTS);
    b.emit(BITNET_OP_GATHER_ROWS, {b.x}, {rows});
    const uint32_t y = b.value(rows_of_head, BITNET_DTYPE_F32, BITNET_DIM_OUTPUTS);
    b.emit(BITNET_OP_LINEAR_DENSE, {b.norm(rows, BITNET_DIM_OUTPUTS)}, {y}, {w});
    return y;
  });
  return b.finished(logits, rows_of_head, {BITNET_OP_LM_HEAD, BITNET_OP_LINEAR_DENSE},
                    normed_product<Weight>);
}
// The same, of which steps request the largest logits.
golden_program largest() {
  golden_program out = head<scattered>("lm_head.f16, largest logits", n_head_rows);
  out.graph.add_port(BITNET_PORT_LARGEST, BITNET_NONE);
  out.largest = n_largest;
  return out;
}

}  // namespace
}  // namespace bitnet::probe::golden

namespace bitnet::probe {

std::vector<golden_program> golden_programs() {
  using namespace golden;
  std::vector<golden_program> out;
  out.push_back(linear_ternary());
  out.push_back(bit_linear());
  out.push_back(linear_dense("linear_dense.f32", BITNET_FORMAT_F32));
  out.push_back(linear_dense("linear_dense.f16", BITNET_FORMAT_F16));
  out.push_back(linear_dense("linear_dense.bf16", BITNET_FORMAT_BF16));
  out.push_back(add());
  out.push_back(mul());
  out.push_back(relu2());
  out.push_back(rms_norm());
  out.push_back(rope());
  out.push_back(attention("attn_paged", false));
  out.push_back(attention("attn_out.ternary2", true));
  out.push_back(feed_forward());
  out.push_back(head<small>("lm_head.f16", n_rows));
  out.push_back(long_attention("attn_paged of a long context", false));
  out.push_back(largest());
  add_quantisers_and_groups(out);
  add_formats_with_blocks(out);
  add_layers_with_states(out);
  add_ops_of_rows(out);
  out.push_back(long_attention("attn_paged of normed heads", true));
  return out;
}

}  // namespace bitnet::probe

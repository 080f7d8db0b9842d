// Programs of layers with a state: the short convolution and the gated delta rule.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "probe/golden_builder.hpp"
#include "probe/golden_programs.hpp"

namespace bitnet::probe::golden {
namespace {

// Elements of a state before the op's part.
constexpr uint32_t first_element = 3;

// ---- SHORT_CONV: small whole numbers -----------------------------------------------------------

constexpr uint32_t n_taps = 4;

int tap(uint32_t column, uint32_t i) {
  return static_cast<int>((column * 5 + i * 3 + column * i) % 15) - 7;
}
// Rows before the sequence count as zeros.
double convolved(uint32_t token, uint32_t column) {
  int64_t sum = 0;
  for (uint32_t i = 0; i < n_taps; ++i)
    if (token + i + 1 >= n_taps)
      sum += int64_t{tap(column, i)} * activation(token + i + 1 - n_taps, column);
  return static_cast<double>(sum);
}

golden_program short_conv() {
  builder b("short_conv", activation, golden_state_positions);
  const uint32_t y = b.value(width);
  b.emit(BITNET_OP_SHORT_CONV, {b.x}, {y}, {b.matrix(BITNET_FORMAT_F32, n_taps, width, tap)})
      .ints[0] = first_element;
  return b.with_state(b.gathered(y, width, {BITNET_OP_SHORT_CONV}, convolved),
                      first_element + (n_taps - 1) * width);
}

// ---- DELTA_RULE: a memory of eight values ------------------------------------------------------

// Keys are eight orthogonal vectors of length 1: 64 elements 1/8 or -1/8, the others 0. So a state
// is a sum of values times their keys, and a query that is a key finds its value. Gates are 0, 1/2
// or 1; f32 holds every sum.
constexpr uint32_t n_key_heads = 2, n_value_heads = 4, key_dim = 128, value_dim = 24;
constexpr uint32_t n_keys = 8, keys_begin = n_key_heads * key_dim, values_begin = 2 * keys_begin;
constexpr uint32_t rule_width = values_begin + n_value_heads * value_dim;
constexpr uint32_t result_width = n_value_heads * value_dim;
constexpr float eighth = 0.125F, half = 0.5F, twice = 2;

uint32_t stored_key(uint32_t token, uint32_t head) {
  return (token * 3 + head) % n_keys;
}
uint32_t sought_key(uint32_t token, uint32_t head) {
  return (token * 5 + head * 2) % n_keys;
}
int query_sign(uint32_t token, uint32_t head) {
  return (token + head) % 3 == 0 ? -1 : 1;
}
int value_of(uint32_t token, uint32_t head, uint32_t i) {
  return activation(token, head * value_dim + i) / 4;
}
// In eighths.
int key_element(uint32_t key, uint32_t i) {
  if (i / 64 != key / 4) return 0;
  const uint32_t pattern = key % 4 * 19 + 5;
  return std::popcount(i % 64 & pattern) % 2 == 0 ? 1 : -1;
}
// Of a row: queries, keys and values, in eighths.
int rule_input(uint32_t token, uint32_t column) {
  const uint32_t head = column % keys_begin / key_dim, i = column % key_dim;
  if (column < keys_begin) return query_sign(token, head) * key_element(sought_key(token, head), i);
  if (column < values_begin) return key_element(stored_key(token, head), i);
  const uint32_t at = column - values_begin;
  return 8 * value_of(token, at / value_dim, at % value_dim);
}
// In halves: of each head what remains of the state, then what enters it.
int decay_of(uint32_t token, uint32_t head) {
  if (token == 5 && head == 1) return 0;
  return (token + head) % 7 == 3 ? 1 : 2;
}
int strength_of(uint32_t token, uint32_t head) {
  constexpr std::array strengths = {2, 2, 1, 0};
  return strengths[(token * 3 + head) % strengths.size()];
}
int rule_gate(uint32_t token, uint32_t column) {
  return column < n_value_heads ? decay_of(token, column)
                                : strength_of(token, column - n_value_heads);
}

double recalled(uint32_t token, uint32_t column) {
  const uint32_t head = column / value_dim, key_head = head % n_key_heads;
  std::array<double, n_keys> memory{};
  for (uint32_t t = 0; t <= token; ++t) {
    for (double& one : memory) one *= decay_of(t, head) / 2.0;
    double& stored = memory[stored_key(t, key_head)];
    stored += strength_of(t, head) / 2.0 * (value_of(t, head, column % value_dim) - stored);
  }
  return twice * query_sign(token, key_head) * memory[sought_key(token, key_head)];
}

golden_program delta_rule() {
  builder b("delta_rule", golden_state_positions);
  const uint32_t x = b.rows_of(rule_input, rule_width, BITNET_FORMAT_F32, eighth);
  const uint32_t gates = b.rows_of(rule_gate, 2 * n_value_heads, BITNET_FORMAT_F32, half);
  const uint32_t y = b.value(result_width);
  bitnet_op& o = b.emit(BITNET_OP_DELTA_RULE, {x, gates}, {y});
  std::ranges::copy(std::array{first_element, n_key_heads, n_value_heads, key_dim, value_dim,
                               uint32_t{BITNET_DELTA_TURNS}},
                    o.ints);
  o.floats[0] = twice;
  o.floats[1] = 1e-9F;  // too small to change a length of 1
  return b.with_state(b.gathered(y, result_width, {BITNET_OP_DELTA_RULE}, recalled),
                      first_element + n_value_heads * key_dim * value_dim);
}

// ---- DELTA_GATES: rounded numbers --------------------------------------------------------------

constexpr uint32_t n_gates = 12;

int gate_input(uint32_t token, uint32_t head) {
  return static_cast<int>((token * 5 + head * 3) % 17) - 8;
}
int other_gate_input(uint32_t token, uint32_t head) {
  return static_cast<int>((token * 3 + head * 7) % 17) - 8;
}
// Factors, then biases.
int gate_weight(uint32_t row, uint32_t head) {
  return row == 0 ? -1 - static_cast<int>(head % 2) : static_cast<int>(head % 5) - 2;
}
double gate(uint32_t token, uint32_t column) {
  const uint32_t head = column % n_gates;
  if (column >= n_gates) return 1 / (1 + std::exp(-other_gate_input(token, head)));
  const double softplus = std::log1p(std::exp(gate_input(token, head) + gate_weight(1, head)));
  return std::exp(gate_weight(0, head) * softplus);
}

golden_program delta_gates() {
  builder b("delta_gates", golden_tokens);
  const uint32_t a = b.rows_of(gate_input, n_gates);
  const uint32_t other = b.rows_of(other_gate_input, n_gates);
  const uint32_t y = b.value(2 * n_gates);
  b.emit(BITNET_OP_DELTA_GATES, {a, other}, {y},
         {b.matrix(BITNET_FORMAT_F32, n_gates, 2, gate_weight)});
  golden_program out = b.gathered(y, 2 * n_gates, {BITNET_OP_DELTA_GATES}, gate);
  out.allowed = allowed_of_exponentials;
  return out;
}

}  // namespace

void add_layers_with_states(std::vector<golden_program>& out) {
  out.push_back(short_conv());
  out.push_back(delta_gates());
  out.push_back(delta_rule());
}

}  // namespace bitnet::probe::golden

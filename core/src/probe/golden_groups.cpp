// Programs of models whose activations and weights have factors in groups. All factors are powers
// of two, so that f32 holds every sum, in any order.

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "probe/golden_builder.hpp"
#include "probe/golden_programs.hpp"

namespace bitnet::probe::golden {
namespace {

constexpr uint32_t n_grouped_rows = 44;

// A group's largest number is 127 times its own power of two, and it stands in the group's first
// 32 elements; then quantising changes nothing.
template <uint32_t Group>
int in_groups(uint32_t token, uint32_t k) {
  const int code = k % Group == (token * 5 + k / Group) % 32 ? 127 : activation(token + 1, k) % 127;
  return code << (token + k / Group * 3) % 4;
}
// The factor of a group of weights: 1, 2 or 4.
constexpr uint32_t weight_factor(uint32_t row, uint32_t group) {
  return 1U << (row + group * 2) % 3;
}

struct grouped_codes {
  uint32_t q, d;
};
grouped_codes quantise_groups(builder& b, uint32_t from, uint32_t group) {
  const grouped_codes out{b.value(width, BITNET_DTYPE_I8), b.value(width / group)};
  b.emit(BITNET_OP_ACT_QUANT_I8_GROUPED, {from}, {out.q, out.d}).ints[0] =
      static_cast<int32_t>(group);
  return out;
}

// 0 as a group of weights: one factor, 1.
template <uint32_t Group, uint32_t OfWeights>
double grouped_product(uint32_t token, uint32_t row) {
  int64_t sum = 0;
  for (uint32_t k = 0; k < width; ++k) {
    const int64_t factor = OfWeights == 0 ? 1 : weight_factor(row, k / std::max(OfWeights, 1U));
    sum += factor * in_groups<Group>(token, k) * trit(row, k);
  }
  return static_cast<double>(sum);
}

template <uint32_t OfWeights>
uint32_t weights_in_groups(builder& b, uint32_t rows) {
  std::vector<float> factors;
  if constexpr (OfWeights != 0)
    for (uint32_t row = 0; row < rows; ++row)
      for (uint32_t group = 0; group < width / OfWeights; ++group)
        factors.push_back(static_cast<float>(weight_factor(row, group)));
  return b.ternary(width, rows, trit, OfWeights, std::move(factors));
}

template <uint32_t Group, uint32_t OfWeights>
golden_program linear_grouped(const char* name) {
  builder b(name, in_groups<Group>);
  const auto [q, d] = quantise_groups(b, b.x, Group);
  const uint32_t y = b.value(n_grouped_rows);
  b.emit(BITNET_OP_LINEAR_TERNARY_GROUPED, {q, d}, {y},
         {weights_in_groups<OfWeights>(b, n_grouped_rows)});
  return b.gathered(y, n_grouped_rows,
                    {BITNET_OP_LINEAR_TERNARY_GROUPED, BITNET_OP_ACT_QUANT_I8_GROUPED},
                    grouped_product<Group, OfWeights>);
}

// With the sum that follows it in a layer, which may be part of the same kernel.
golden_program linear_grouped_add() {
  constexpr uint32_t group = 64, of_weights = 32;
  builder b("linear_ternary_grouped.ternary2, added", in_groups<group>);
  const auto [q, d] = quantise_groups(b, b.x, group);
  const uint32_t y = b.value(width);
  b.emit(BITNET_OP_LINEAR_TERNARY_GROUPED, {q, d}, {y}, {weights_in_groups<of_weights>(b, width)});
  return b.gathered(b.binary(BITNET_OP_ADD, b.x, y, width), width,
                    {BITNET_OP_LINEAR_TERNARY_GROUPED}, [](uint32_t t, uint32_t row) {
                      return in_groups<group>(t, row) + grouped_product<group, of_weights>(t, row);
                    });
}

// Four times a code, or between two codes; the largest of each 32 is 4 * 127.
int between_codes(uint32_t token, uint32_t k) {
  if (k % 32 == token) return 4 * 127;
  return static_cast<int>(mixed(token, k) % 1009) - 504;
}
// Half to even.
int nearest_code(int x) {
  const int size = std::abs(x), code = size / 4, rest = size % 4;
  const int up = rest > 2 || (rest == 2 && code % 2 == 1) ? 1 : 0;
  return x < 0 ? -(code + up) : code + up;
}
uint32_t same_column(uint32_t row) {
  return row;
}
double rounded(uint32_t token, uint32_t k) {
  return 4 * nearest_code(between_codes(token, k));
}

// Products that select one code each, by kernels that the programs before have judged.
golden_program act_quant() {
  builder b("act_quant_i8", between_codes);
  const uint32_t y =
      b.linear(b.quantise(b.x, width), width, b.ternary(width, width, pick<same_column>));
  golden_program out = b.gathered(y, width, {BITNET_OP_ACT_QUANT_I8}, rounded);
  out.allowed = 0x1p-20;  // the product is divided by the scale, which need not be exact
  return out;
}
golden_program act_quant_grouped() {
  builder b("act_quant_i8_grouped", between_codes);
  const auto [q, d] = quantise_groups(b, b.x, 32);
  const uint32_t y = b.value(width);
  b.emit(BITNET_OP_LINEAR_TERNARY_GROUPED, {q, d}, {y},
         {b.ternary(width, width, pick<same_column>)});
  return b.gathered(y, width, {BITNET_OP_ACT_QUANT_I8_GROUPED}, rounded);
}

// Rows of signs times weights, of which each 32 have 127 once. Backends may have one kernel for a
// norm and the codes of its result.
int group_norm_weight(uint32_t, uint32_t k) {
  return k % 32 == k / 32 ? 127 : norm_weight(0, k) % 127;
}
golden_program norm_quant_grouped() {
  builder b("act_quant_i8_grouped of a norm", sign);
  const uint32_t normed = b.value(width);
  b.emit(BITNET_OP_RMS_NORM, {b.x}, {normed},
         {b.matrix(BITNET_FORMAT_F32, width, 1, group_norm_weight, 1)})
      .floats[0] = 1e-9F;  // too small to change a mean square of 1
  const auto [q, d] = quantise_groups(b, normed, 32);
  const uint32_t y = b.value(width);
  b.emit(BITNET_OP_LINEAR_TERNARY_GROUPED, {q, d}, {y},
         {b.ternary(width, width, pick<same_column>)});
  return b.gathered(y, width, {BITNET_OP_ACT_QUANT_I8_GROUPED}, [](uint32_t t, uint32_t k) {
    return 1.0 * sign(t, k) * group_norm_weight(0, k);
  });
}

// 1 or -1, but 1 where the largest of a group stands in in_groups.
int gates(uint32_t token, uint32_t k) {
  return k % 32 == (token * 5 + k / 32) % 32 ? 1 : sign(token, k);
}
// Squared ReLU of a gate is 1 or 0. Backends may have one kernel for all before the product.
golden_program glu_quant_grouped() {
  builder b("act_quant_i8_grouped of a gate", gates);
  const uint32_t up = b.rows_of(in_groups<32>, width);
  const uint32_t gated = b.binary(BITNET_OP_MUL, b.unary(BITNET_OP_RELU2, b.x, width), up, width);
  const auto [q, d] = quantise_groups(b, gated, 32);
  const uint32_t y = b.value(width);
  b.emit(BITNET_OP_LINEAR_TERNARY_GROUPED, {q, d}, {y},
         {b.ternary(width, width, pick<same_column>)});
  return b.gathered(y, width, {BITNET_OP_ACT_QUANT_I8_GROUPED}, [](uint32_t t, uint32_t k) {
    return gates(t, k) > 0 ? 1.0 * in_groups<32>(t, k) : 0.0;
  });
}

}  // namespace

void add_quantisers_and_groups(std::vector<golden_program>& out) {
  out.push_back(act_quant());
  out.push_back(linear_grouped<32, 128>("linear_ternary_grouped.ternary2"));
  out.push_back(linear_grouped<128, 0>("linear_ternary_grouped.ternary2, one factor"));
  out.push_back(linear_grouped_add());
  out.push_back(act_quant_grouped());
  out.push_back(norm_quant_grouped());
  out.push_back(glu_quant_grouped());
}

}  // namespace bitnet::probe::golden

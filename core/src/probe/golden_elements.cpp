// Programs of ops on single rows beyond those of the first models: norms of heads, curves, factors,
// parts of rows and the Hadamard matrix.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "probe/golden_builder.hpp"
#include "probe/golden_programs.hpp"

namespace bitnet::probe::golden {
namespace {

// Rows of heads: of a head all elements are 1 or -1, or all are 0, so that a norm of more than one
// head shows.
int signs_or_zeros(uint32_t token, uint32_t k) {
  return (token + k / golden_head_dim) % 3 == 0 ? 0 : sign(token, k);
}
golden_program head_norms() {
  builder b("rms_norm_heads", signs_or_zeros);
  const uint32_t y = b.value(width);
  bitnet_op& o = b.emit(BITNET_OP_RMS_NORM_HEADS, {b.x}, {y},
                        {b.matrix(BITNET_FORMAT_F32, golden_head_dim, 1, norm_weight, 1)});
  o.ints[0] = width / golden_head_dim;
  o.floats[0] = 1e-9F;  // too small to change a mean square of 1
  return b.gathered(y, width, {BITNET_OP_RMS_NORM_HEADS}, [](uint32_t t, uint32_t k) {
    return 1.0 * signs_or_zeros(t, k) * norm_weight(0, k % golden_head_dim);
  });
}

// From -8 to 8, so that no result is a denormal number.
int curve_input(uint32_t token, uint32_t k) {
  return static_cast<int>((token * 5 + k * 3 + k / 17) % 17) - 8;
}
double logistic(double x) {
  return 1 / (1 + std::exp(-x));
}
double sigmoid(uint32_t token, uint32_t k) {
  return logistic(curve_input(token, k));
}
double silu(uint32_t token, uint32_t k) {
  return curve_input(token, k) * sigmoid(token, k);
}
// By tanh, as the definition of GELU has it. Beside -8, tanh in double would lose the result.
double gelu(uint32_t token, uint32_t k) {
  constexpr double root = 0.797884560802865356;  // of 2 / pi
  const double x = curve_input(token, k);
  return x * logistic(2 * root * (x + 0.044715 * x * x * x));
}
golden_program curve(const char* name, uint32_t op, double (*expected)(uint32_t, uint32_t)) {
  builder b(name, curve_input);
  golden_program out = b.gathered(b.unary(op, b.x, width), width, {op}, expected);
  out.allowed = allowed_of_exponentials;
  return out;
}

golden_program scale() {
  builder b("scale", activation);
  const uint32_t y = b.value(width);
  b.emit(BITNET_OP_SCALE, {b.x}, {y}).floats[0] = -3;
  return b.gathered(y, width, {BITNET_OP_SCALE},
                    [](uint32_t t, uint32_t k) { return -3.0 * activation(t, k); });
}

// Four times three parts of five elements.
golden_program columns() {
  constexpr uint32_t length = 5, first = 3, inner = 3, inner_stride = 7, outer = 4;
  constexpr uint32_t outer_stride = 60, all = outer * inner * length;
  builder b("columns", activation);
  const uint32_t y = b.value(all);
  std::ranges::copy(std::array{length, first, inner, inner_stride, outer, outer_stride},
                    b.emit(BITNET_OP_COLUMNS, {b.x}, {y}).ints);
  return b.gathered(y, all, {BITNET_OP_COLUMNS}, [](uint32_t t, uint32_t column) {
    const uint32_t of_outer = column / (inner * length), of_inner = column / length % inner;
    return 1.0 * activation(t, first + of_outer * outer_stride + of_inner * inner_stride +
                                   column % length);
  });
}

// Blocks of 64, whose root is 8; the rows are multiples of it.
constexpr uint32_t hadamard_block = 64, hadamard_root = 8;
int eights(uint32_t token, uint32_t k) {
  return static_cast<int>(hadamard_root) * activation(token, k);
}
int64_t hadamard_sum(uint32_t token, uint32_t k, element factor) {
  const uint32_t begin = k / hadamard_block * hadamard_block;
  int64_t sum = 0;
  for (uint32_t i = 0; i < hadamard_block; ++i) {
    const int64_t x = int64_t{activation(token, begin + i)} * factor(0, begin + i);
    sum += std::popcount((k - begin) & i) % 2 == 0 ? x : -x;
  }
  return sum;
}
int one(uint32_t, uint32_t) {
  return 1;
}
// The sum of both forms: with factors before and after.
golden_program hadamard() {
  builder b("hadamard", eights);
  const uint32_t factors = b.matrix(BITNET_FORMAT_F32, width, 1, norm_weight, 1);
  const auto transformed = [&](int32_t place) {
    const uint32_t y = b.value(width);
    bitnet_op& o = b.emit(BITNET_OP_HADAMARD, {b.x}, {y}, {factors});
    o.ints[0] = hadamard_block;
    o.ints[1] = place;
    return y;
  };
  const uint32_t first = transformed(BITNET_HADAMARD_FACTORS_FIRST);
  const uint32_t last = transformed(BITNET_HADAMARD_FACTORS_LAST);
  return b.gathered(b.binary(BITNET_OP_ADD, first, last, width), width, {BITNET_OP_HADAMARD},
                    [](uint32_t t, uint32_t k) {
                      return static_cast<double>(hadamard_sum(t, k, norm_weight) +
                                                 hadamard_sum(t, k, one) * norm_weight(0, k));
                    });
}

}  // namespace

void add_ops_of_rows(std::vector<golden_program>& out) {
  out.push_back(head_norms());
  out.push_back(curve("silu", BITNET_OP_SILU, silu));
  out.push_back(curve("gelu", BITNET_OP_GELU, gelu));
  out.push_back(curve("sigmoid", BITNET_OP_SIGMOID, sigmoid));
  out.push_back(scale());
  out.push_back(columns());
  out.push_back(hadamard());
}

}  // namespace bitnet::probe::golden

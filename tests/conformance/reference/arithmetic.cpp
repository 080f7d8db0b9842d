#include "reference/arithmetic.hpp"

#include <cmath>
#include <numbers>
#include <stdexcept>
#include <string>

#include "model/formats.hpp"

namespace bitnet::conformance {
namespace {

// x (1 + tanh u) / 2; far below 0, where tanh is -1 but for its last bits, by exponentials.
double gelu(double x) {
  const double u = gelu_argument(x) / 2;
  if (u > -1) return x / 2 * (1 + std::tanh(u));
  return x * std::exp(2 * u) / (1 + std::exp(2 * u));
}

}  // namespace

double gelu_argument(double x) {
  return 2 * std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x);
}

double element_result(uint32_t op, float a, float b) {
  const auto x = static_cast<double>(a);
  switch (op) {
    case BITNET_OP_ADD:
      return static_cast<double>(a + b);
    case BITNET_OP_MUL:
    case BITNET_OP_SCALE:
      return static_cast<double>(a * b);
    case BITNET_OP_RELU2:
      return a > 0 ? static_cast<double>(a * a) : 0.0;
    case BITNET_OP_GELU:
      return gelu(x);
    case BITNET_OP_SIGMOID:
      return 1 / (1 + std::exp(-x));
    case BITNET_OP_SILU:
      return x / (1 + std::exp(-x));
    default:
      throw std::runtime_error("the kit has no arithmetic of op " + std::to_string(op));
  }
}

double norm_factor(std::span<const float> x, float eps) {
  double sum = 0;
  for (const float v : x) sum += static_cast<double>(v) * static_cast<double>(v);
  return 1 / std::sqrt(sum / static_cast<double>(x.size()) + static_cast<double>(eps));
}

rope_pair rope_pair_of(uint64_t place, uint64_t dims, int32_t mode) {
  const bool neox = mode == BITNET_ROPE_NEOX;
  const uint64_t number = neox ? place % (dims / 2) : place / 2;
  return neox ? rope_pair{number, number, number + dims / 2}
              : rope_pair{number, 2 * number, 2 * number + 1};
}

double rope_angle(double position, double base, uint64_t number, uint64_t dims) {
  return position * std::pow(base, -2.0 * static_cast<double>(number) / static_cast<double>(dims));
}

double turned(float first, float second, bool is_first, double angle) {
  const auto a = static_cast<double>(first), b = static_cast<double>(second);
  return is_first ? a * std::cos(angle) - b * std::sin(angle)
                  : a * std::sin(angle) + b * std::cos(angle);
}

float ternary_result(const model_tensor& w, uint64_t r, const quantised& x) {
  const uint64_t k = x.q.size();
  const uint8_t* row = w.data.data() + r * row_bytes(BITNET_FORMAT_TERNARY2, k);
  const uint64_t group = w.desc.scale_group == 0 ? k : w.desc.scale_group;
  float total = 0;
  int32_t sum = 0;
  for (uint64_t i = 0; i < k; ++i) {
    sum += static_cast<int32_t>(element(BITNET_FORMAT_TERNARY2, row, i)) * x.q[i];
    if ((i + 1) % group != 0) continue;
    if (w.desc.scale_group == 0) return static_cast<float>(sum) / x.scale * w.scales[0];
    const float part = static_cast<float>(sum) * w.scales[(r * k + i) / group];
    total = total + part;
    sum = 0;
  }
  return total / x.scale;
}

}  // namespace bitnet::conformance

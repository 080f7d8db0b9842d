#include "model/shape/rope.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace bitnet::model {
namespace {

// The index, as a real number, of the pair whose wave makes `turns` turns in the original context.
double pair_of(double turns, const rope_scaling& how, double base, uint32_t dims) {
  return dims * std::log(how.original_context / (turns * 2 * std::numbers::pi)) /
         (2 * std::log(base));
}

}  // namespace

float dynamic_base(const rope_scaling& how, float base, uint32_t dims, uint32_t n_context) {
  if (n_context <= how.original_context || dims <= 2) return base;
  const double longer =
      double{how.factor} * n_context / how.original_context - (double{how.factor} - 1);
  return static_cast<float>(base * std::pow(longer, dims / (dims - 2.0)));
}

std::vector<float> yarn_divisors(const rope_scaling& how, float base, uint32_t dims) {
  const double last = dims - 1.0;
  const double low = std::max(std::floor(pair_of(how.beta_fast, how, base, dims)), 0.0);
  const double high = std::min(std::ceil(pair_of(how.beta_slow, how, base, dims)), last);
  const double width = std::max(high - low, 0.001);
  std::vector<float> out(dims / 2);
  for (uint32_t i = 0; i < dims / 2; ++i) {
    const double stretched = std::clamp((i - low) / width, 0.0, 1.0);
    const double kept = (1 - stretched) * how.extrapolation;
    out[i] = static_cast<float>(1 / ((1 - kept) / how.factor + kept));
  }
  return out;
}

float yarn_magnitude(float factor) {
  return factor <= 1 ? 1.0F : 0.1F * std::log(factor) + 1;
}

}  // namespace bitnet::model

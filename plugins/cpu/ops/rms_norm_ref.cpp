#include <cmath>

#include "ops.hpp"

namespace bitnet::cpu {

void rms_norm_row(const float* x, const float* w, float eps, uint64_t k, float* y) {
  double sum = 0;
  for (uint64_t i = 0; i < k; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  const auto mean = static_cast<float>(sum / static_cast<double>(k));
  const float factor = 1.0f / std::sqrt(mean + eps);
  for (uint64_t i = 0; i < k; ++i) y[i] = x[i] * factor * w[i];
}

}  // namespace bitnet::cpu

#include <cmath>

#include "ops.hpp"

namespace bitnet::cpu {

void add_row(const float* a, const float* b, uint64_t k, float* y) {
  for (uint64_t i = 0; i < k; ++i) y[i] = a[i] + b[i];
}

void mul_row(const float* a, const float* b, uint64_t k, float* y) {
  for (uint64_t i = 0; i < k; ++i) y[i] = a[i] * b[i];
}

void relu2_row(const float* x, uint64_t k, float* y) {
  for (uint64_t i = 0; i < k; ++i) {
    const float positive = x[i] > 0 ? x[i] : 0;
    y[i] = positive * positive;
  }
}

void silu_row(const float* x, uint64_t k, float* y) {
  for (uint64_t i = 0; i < k; ++i) y[i] = x[i] / (1.0f + std::exp(-x[i]));
}

}  // namespace bitnet::cpu

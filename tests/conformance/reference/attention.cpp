#include "reference/attention.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "reference/op_case.hpp"

namespace bitnet::conformance {

void attend_head(std::span<const float> q, std::span<const double* const> keys,
                 std::span<const double* const> values, double scale, std::vector<double>& expected,
                 std::vector<double>& allowed, double rounding) {
  std::vector<double> score, error;
  const auto n = static_cast<double>(q.size());
  for (const double* key : keys) {
    double sum = 0, sizes = 0;
    for (uint64_t i = 0; i < q.size(); ++i) {
      const double product = key[i] * static_cast<double>(q[i]);
      sum += product;
      sizes += std::fabs(product);
    }
    score.push_back(sum * scale);
    // Any order of the products; one more product by the scale, one difference to the largest.
    error.push_back(((n + 2) * unit + rounding) * sizes * scale);
  }
  const double largest = *std::ranges::max_element(score);
  const double largest_error = *std::ranges::max_element(error);
  double sum = 0;
  std::vector<double> exponential;
  for (const double x : score) sum += exponential.emplace_back(std::exp(x - largest));
  const auto count = static_cast<double>(score.size());
  for (uint64_t i = 0; i < q.size(); ++i) {
    double y = 0, off = 0, sizes = 0;
    for (uint64_t j = 0; j < score.size(); ++j) {
      const double part = exponential[j] / sum * values[j][i];
      y += part;
      sizes += std::fabs(part);
      // The exponential of a wrong score, and its own error.
      off += std::fabs(part) *
             (std::expm1(error[j]) + (3 + 2 * (largest - score[j])) * ulp + rounding);
    }
    // The divisor is a sum of such exponentials too; then sums of `count` parts, a product and a
    // quotient.
    off +=
        sizes * (std::expm1(largest_error) + 3 * ulp + 2 * count * unit + unit + 2.5 * ulp) + off;
    expected.push_back(y);
    allowed.push_back(off + 1e-30);
  }
}

}  // namespace bitnet::conformance

#include "sampling/logarithm.hpp"

#include <cmath>

#include "sampling/exponential.hpp"

namespace bitnet::sampling {

double logarithm(double x) {
  int n = 0;
  double m = std::frexp(x, &n);  // in [1/2, 1)
  constexpr double root_half = 0x1.6a09e667f3bcdp-1;
  if (m < root_half) {
    m *= 2;
    --n;
  }
  // |s| <= 0.172 for m in [sqrt(1/2), sqrt(2)); the series up to s^23 / 23, the rest is below
  // 2^-64.
  const double s = (m - 1) / (m + 1);
  const double square = s * s;
  double sum = 0;
  for (int i = 23; i >= 1; i -= 2) sum = sum * square + 1.0 / i;
  constexpr double ln2_high = 0x1.62e42fee00000p-1;  // 21 zero bits: n times it is exact
  constexpr double ln2_low = 0x1.a39ef35793c76p-33;
  return n * ln2_high + (n * ln2_low + 2 * s * sum);
}

double power(double x, double e) {
  if (e == 0) return 1;
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  return exponential(e * logarithm(x));
}

}  // namespace bitnet::sampling

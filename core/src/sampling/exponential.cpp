#include "sampling/exponential.hpp"

#include <array>
#include <cmath>

namespace bitnet::sampling {
namespace {

// 1/13!, 1/12!, ... 1/0!
constexpr std::array<double, 14> series = [] {
  std::array<double, 14> out{};
  double factorial = 1;
  for (int i = 0; i < 14; ++i) {
    out[13 - i] = 1 / factorial;
    factorial *= i + 1;
  }
  return out;
}();

}  // namespace

double exponential(double x) {
  if (!(x > -700)) return 0;
  // x = n ln 2 + r with |r| <= ln 2 / 2; the high part of ln 2 has 21 zero bits at its end, so that
  // n times it is exact.
  constexpr double ln2_high = 0x1.62e42fee00000p-1;
  constexpr double ln2_low = 0x1.a39ef35793c76p-33;
  constexpr double log2_e = 0x1.71547652b82fep+0;
  const double n = std::floor(x * log2_e + 0.5);
  const double r = x - n * ln2_high - n * ln2_low;
  // The series of e^r up to r^13 / 13!; the rest is below 2^-60.
  double sum = 0;
  for (const double coefficient : series) sum = sum * r + coefficient;
  return std::ldexp(sum, static_cast<int>(n));
}

}  // namespace bitnet::sampling

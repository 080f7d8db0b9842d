#include "judge/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

namespace bitnet::host {

double mean(const std::vector<double>& x) {
  return std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size());
}

double deviation(const std::vector<double>& x) {
  if (x.size() < 2) return 0;
  double sum = 0;
  for (const double v : x) sum += (v - mean(x)) * (v - mean(x));
  return std::sqrt(sum / static_cast<double>(x.size() - 1));
}

double median(std::vector<double> x) {
  std::ranges::sort(x);
  return (x[(x.size() - 1) / 2] + x[x.size() / 2]) / 2;
}

double percentile(std::vector<double> x, double percent) {
  const double rank = std::ceil(percent * static_cast<double>(x.size()) / 100);
  const auto at =
      static_cast<std::ptrdiff_t>(std::clamp(rank, 1.0, static_cast<double>(x.size())) - 1);
  std::ranges::nth_element(x, x.begin() + at);
  return x[static_cast<std::size_t>(at)];
}

}  // namespace bitnet::host

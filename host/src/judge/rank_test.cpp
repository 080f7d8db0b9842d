#include "judge/rank_test.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <numeric>
#include <vector>

#include "judge/statistics.hpp"

namespace bitnet::host::judge {
namespace {

// Twice the rank of each value; doubled, so that the mean rank of ties is whole.
std::vector<uint64_t> doubled_ranks(std::span<const double> values) {
  std::vector<uint64_t> out;
  out.reserve(values.size());
  for (const double x : values) {
    const auto less = static_cast<uint64_t>(
        std::ranges::count_if(values, [&](double other) { return other < x; }));
    const auto equal = static_cast<uint64_t>(std::ranges::count(values, x));
    out.push_back(2 * less + equal + 1);
  }
  return out;
}

// [s]: among all choices of `n` of these numbers, the share with sum s.
std::vector<double> shares_of_sums(std::span<const uint64_t> numbers, std::size_t n) {
  const uint64_t most = std::accumulate(numbers.begin(), numbers.end(), uint64_t{0});
  std::vector<std::vector<double>> ways(n + 1, std::vector<double>(most + 1, 0.0));
  ways[0][0] = 1;
  for (const uint64_t number : numbers)
    for (std::size_t k = n; k > 0; --k)
      for (uint64_t s = most; s >= number; --s) ways[k][s] += ways[k - 1][s - number];
  const double all = std::accumulate(ways[n].begin(), ways[n].end(), 0.0);
  for (double& x : ways[n]) x /= all;
  return std::move(ways[n]);
}

// The share of sums at least as far from `middle` as `sum`.
double as_far(const std::vector<double>& shares, double middle, double sum) {
  double out = 0;
  for (std::size_t s = 0; s < shares.size(); ++s)
    if (std::abs(static_cast<double>(s) - middle) >= std::abs(sum - middle)) out += shares[s];
  return std::min(out, 1.0);
}

double upper_tail(double z) {
  return std::erfc(z / std::numbers::sqrt2) / 2;
}

// The standard deviation of U, corrected for ties.
double deviation_of_u(std::span<const double> all, double n_a, double n_b) {
  const double n = n_a + n_b;
  double ties = 0;  // sum of t^3 - t over groups of ties; each member adds t^2 - 1
  for (const double x : all) {
    const auto t = static_cast<double>(std::ranges::count(all, x));
    ties += t * t - 1;
  }
  return std::sqrt(n_a * n_b / 12 * (n + 1 - ties / (n * (n - 1))));
}

// [u]: among all orders of n_a and n_b distinct values, the share with U = u.
std::vector<double> shares_of_u(std::size_t n_a, std::size_t n_b) {
  std::vector<uint64_t> ranks(n_a + n_b);
  std::iota(ranks.begin(), ranks.end(), uint64_t{1});
  const std::vector<double> sums = shares_of_sums(ranks, n_b);
  const std::size_t least = n_b * (n_b + 1) / 2;
  return {sums.begin() + static_cast<std::ptrdiff_t>(least),
          sums.begin() + static_cast<std::ptrdiff_t>(least + n_a * n_b + 1)};
}

// How many of the smallest and of the largest ratios the interval leaves out, and its confidence.
struct trimmed {
  std::size_t n = 0;
  double confidence = 0;
};
trimmed trim(std::size_t n_a, std::size_t n_b, double confidence) {
  const double each = (1 - confidence) / 2;
  const auto pairs = static_cast<double>(n_a * n_b);
  if (n_a + n_b > most_exact) {
    const double deviation = std::sqrt(pairs * static_cast<double>(n_a + n_b + 1) / 12);
    double n = std::floor(pairs / 2);
    while (n > 0 && upper_tail((pairs / 2 - n + 0.5) / deviation) > each) --n;
    return {static_cast<std::size_t>(n), 1 - 2 * upper_tail((pairs / 2 - n + 0.5) / deviation)};
  }
  const std::vector<double> shares = shares_of_u(n_a, n_b);
  double below = shares[0];  // P(U <= n)
  if (below > each) return {0, 1 - 2 * below};
  std::size_t n = 0;
  while (below + shares[n + 1] <= each) below += shares[++n];
  return {n, 1 - 2 * below};
}

}  // namespace

rank_test mann_whitney(std::span<const double> a, std::span<const double> b) {
  std::vector<double> all(a.begin(), a.end());
  all.insert(all.end(), b.begin(), b.end());
  const std::vector<uint64_t> ranks = doubled_ranks(all);
  const auto n_a = static_cast<double>(a.size());
  const auto n_b = static_cast<double>(b.size());
  const uint64_t sum = std::accumulate(ranks.begin() + static_cast<std::ptrdiff_t>(a.size()),
                                       ranks.end(), uint64_t{0});
  rank_test out;
  out.u = static_cast<double>(sum) / 2 - n_b * (n_b + 1) / 2;
  out.exact = all.size() <= most_exact;
  if (out.exact) {
    const std::vector<double> shares = shares_of_sums(ranks, b.size());
    const double middle = n_b * (n_a + n_b + 1);  // of doubled ranks
    out.p = as_far(shares, middle, static_cast<double>(sum));
    out.least_p = std::min(2 * shares_of_u(a.size(), b.size())[0], 1.0);
    return out;
  }
  const double off = std::abs(out.u - n_a * n_b / 2);
  const double spread = deviation_of_u(all, n_a, n_b);
  out.p = spread == 0 ? 1 : std::min(2 * upper_tail(std::max(off - 0.5, 0.0) / spread), 1.0);
  out.least_p = 0;
  return out;
}

ratio_interval ratio_of(std::span<const double> a, std::span<const double> b, double confidence) {
  std::vector<double> ratios;
  ratios.reserve(a.size() * b.size());
  for (const double x : a)
    for (const double y : b) ratios.push_back(y / x);
  std::ranges::sort(ratios);
  const trimmed off = trim(a.size(), b.size(), confidence);
  return {median(ratios), ratios[off.n], ratios[ratios.size() - 1 - off.n], off.confidence};
}

}  // namespace bitnet::host::judge

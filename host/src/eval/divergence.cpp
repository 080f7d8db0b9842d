#include "eval/divergence.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace bitnet::host::eval {
namespace {

constexpr double z95 = 1.959963984540054;  // two-sided 95 % of the normal distribution
constexpr std::array kld_percents{1.0, 5.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.9};
constexpr std::array delta_percents{0.1, 1.0, 5.0, 25.0, 50.0, 75.0, 95.0, 99.0, 99.9};

template <std::size_t N>
std::vector<quantile> quantiles_of(std::vector<double> values, const std::array<double, N>& at) {
  std::ranges::sort(values);
  std::vector<quantile> out;
  out.reserve(N);
  for (const double percent : at) out.push_back(quantile_of(values, percent));
  return out;
}

}  // namespace

share::interval share::wilson() const {
  const auto total = static_cast<double>(of);
  const double p = value();
  const double z2 = z95 * z95;
  const double middle = (p + z2 / (2 * total)) / (1 + z2 / total);
  const double half =
      z95 / (1 + z2 / total) * std::sqrt(p * (1 - p) / total + z2 / (4 * total * total));
  return {std::max(middle - half, 0.0), std::min(middle + half, 1.0)};
}

quantile quantile_of(std::span<const double> sorted, double percent) {
  const auto n = static_cast<double>(sorted.size());
  const double part = percent / 100;
  const double spread = z95 * std::sqrt(n * part * (1 - part));
  const auto at = [&](double rank) {  // `rank` counts from 1
    const double within = std::clamp(rank, 1.0, n);
    return sorted[static_cast<std::size_t>(within) - 1];
  };
  // Rounding up tolerates products such as 0.95 * 20 that are slightly above a whole number.
  const auto up = [](double rank) { return std::ceil(rank - 1e-9); };
  return {percent, at(up(part * n)), at(std::floor(part * n - spread)),
          at(up(part * n + spread) + 1)};
}

void divergence::add(std::span<const float> base, std::span<const float> own, std::size_t token) {
  const log_softmax p(base);
  const log_softmax q(own);
  double sum = 0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    const double log_p = p[i];
    sum += std::exp(log_p) * (log_p - q[i]);
  }
  const double delta = std::exp(q[token]) - std::exp(p[token]);
  base_nll_.add(-p[token]);
  nll_.add(-q[token]);
  log_ratio_.add(p[token] - q[token]);
  kld_.add(sum);
  delta_p_.add(delta);
  delta_p_squared_.add(delta * delta);
  all_kld_.push_back(sum);
  all_delta_p_.push_back(delta);
  if (p.best() == q.best()) ++n_same_;
}

divergence_summary divergence::summary() const {
  const auto perplexity = [](const estimate& mean) {
    const double value = std::exp(mean.value);
    return estimate{value, value * mean.error};
  };
  divergence_summary out;
  out.n = kld_.count();
  out.base_ppl = perplexity(base_nll_.get());
  out.ppl = perplexity(nll_.get());
  out.log_ratio = log_ratio_.get();
  out.kld = kld_.get();
  const auto [least, most] = std::ranges::minmax(all_kld_);
  out.kld_min = least;
  out.kld_max = most;
  out.kld_quantiles = quantiles_of(all_kld_, kld_percents);
  out.same_top = {n_same_, out.n};
  out.delta_p = delta_p_.get();
  const estimate squared = delta_p_squared_.get();
  out.rms_delta_p.value = std::sqrt(squared.value);
  if (out.rms_delta_p.value > 0)
    out.rms_delta_p.error = squared.error / (2 * out.rms_delta_p.value);
  out.delta_p_quantiles = quantiles_of(all_delta_p_, delta_percents);
  return out;
}

}  // namespace bitnet::host::eval

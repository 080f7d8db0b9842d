#include "sampling/stages.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "sampling/exponential.hpp"
#include "sampling/logarithm.hpp"

namespace bitnet::sampling {
namespace {

// The sum of the weights and the entropy in nats, with log p = (logit - best) - log sum.
struct distribution {
  double best, log_sum, sum, entropy;
};
distribution look_at(std::span<const candidate> candidates) {
  distribution out{};
  out.best = std::ranges::max(candidates, {}, &candidate::logit).logit;
  double product = 0;
  for (const candidate& c : candidates) {
    out.sum += c.weight;
    product += c.weight * (c.logit - out.best);
  }
  out.log_sum = logarithm(out.sum);
  out.entropy = std::max(out.log_sum - product / out.sum, 0.0);
  return out;
}

}  // namespace

double weigh(std::vector<candidate>& candidates, double temperature) {
  double best = -std::numeric_limits<double>::infinity();
  for (const candidate& c : candidates) best = std::max(best, double{c.logit});
  double sum = 0;
  for (candidate& c : candidates) {
    c.weight = exponential((c.logit - best) / temperature);
    sum += c.weight;
  }
  std::erase_if(candidates, [](const candidate& c) { return c.weight == 0; });
  return sum;
}

double least_within_sigma(std::span<const float> logits, float n) {
  // Still above a logit of the model plus a bias of `never`.
  constexpr float forbidden = never / 2;
  double most = -std::numeric_limits<double>::infinity(), sum = 0;
  uint64_t count = 0;
  for (const float l : logits) {
    if (!(l > forbidden)) continue;
    most = std::max(most, double{l});
    sum += l;
    ++count;
  }
  if (count == 0) return most;
  const double mean = sum / static_cast<double>(count);
  double squares = 0;
  for (const float l : logits)
    if (l > forbidden) squares += (l - mean) * (l - mean);
  return most - double{n} * std::sqrt(squares / static_cast<double>(count));
}

void keep_typical(std::vector<candidate>& candidates, float p) {
  if (candidates.empty()) return;
  const distribution of = look_at(candidates);
  struct scored {
    double distance;
    std::size_t at;
  };
  std::vector<scored> order(candidates.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const double information = of.log_sum - (candidates[i].logit - of.best);
    order[i] = {std::abs(information - of.entropy), i};
  }
  std::ranges::sort(order, [&](const scored& a, const scored& b) {
    if (a.distance != b.distance) return a.distance < b.distance;
    return better(candidates[a.at], candidates[b.at]);
  });
  std::size_t n = 0;
  for (double sum = 0; n < order.size() && sum <= of.sum * p; ++n)
    sum += candidates[order[n].at].weight;
  order.resize(std::max<std::size_t>(n, 1));
  std::ranges::sort(order, {}, &scored::at);
  for (std::size_t i = 0; i < order.size(); ++i) candidates[i] = candidates[order[i].at];
  candidates.resize(order.size());
}

void exclude_top_choices(std::vector<candidate>& candidates, float threshold) {
  const double sum = std::accumulate(candidates.begin(), candidates.end(), 0.0,
                                     [](double s, const candidate& c) { return s + c.weight; });
  const double least = sum * threshold;
  const auto is_top = [&](const candidate& c) { return c.weight >= least; };
  const candidate* stays = nullptr;
  for (const candidate& c : candidates)
    if (is_top(c) && (stays == nullptr || better(*stays, c))) stays = &c;
  if (stays == nullptr) return;
  const int32_t id = stays->id;
  std::erase_if(candidates, [&](const candidate& c) { return is_top(c) && c.id != id; });
}

double temperature_by_entropy(std::span<const candidate> candidates, const dynamic_range& of) {
  if (candidates.size() < 2) return of.temperature;
  const double most = logarithm(static_cast<double>(candidates.size()));
  const double share = std::min(look_at(candidates).entropy / most, 1.0);
  const double low = std::max(of.temperature - of.range, 0.0);
  const double high = of.temperature + of.range;
  return low + (high - low) * power(share, of.exponent);
}

}  // namespace bitnet::sampling

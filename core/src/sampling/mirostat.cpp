#include "sampling/mirostat.hpp"

#include <algorithm>
#include <cmath>

#include "sampling/exponential.hpp"
#include "sampling/logarithm.hpp"

namespace bitnet::sampling {
namespace {

constexpr double ln2 = 0x1.62e42fefa39efp-1;

// The exponent is estimated from this many of the most likely tokens, as in the paper.
constexpr std::size_t most_estimated = 100;

// (1 - e^-y) / y, accurate near y = 0 too.
double mean_decay(double y) {
  constexpr double small = 1e-4;  // the next term of the series is below 1e-18
  if (std::abs(y) < small) return 1 - y / 2 + y * y / 6 - y * y * y / 24;
  // For y < 0, 1 - e^-y = -e^-y (1 - e^y); a value beyond the range of a double is infinite.
  if (y < 0) return (1 - exponential(y)) / (-y * exponential(y));
  return (1 - exponential(-y)) / y;
}

}  // namespace

mirostat::mirostat(float tau, float eta, uint32_t n_vocab)
    : tau_(tau), eta_(eta), n_vocab_(n_vocab), mu_(2 * double{tau}) {}

void mirostat::keep_by_zipf(std::vector<candidate>& candidates) const {
  const std::size_t n = std::min(most_estimated, candidates.size());
  const auto middle = candidates.begin() + static_cast<std::ptrdiff_t>(n);
  std::ranges::partial_sort(candidates, middle, better);
  double products = 0, squares = 0;
  for (std::size_t i = 0; i + 1 < n; ++i) {
    const auto rank = static_cast<double>(i + 1);
    const double t = logarithm((rank + 1) / rank);
    const double b = logarithm(candidates[i].weight / candidates[i + 1].weight);
    products += t * b;
    squares += t * t;
  }
  if (n < 2) return;
  // k = (e 2^mu / (1 - N^-e))^(1/s) with e = s - 1, by its logarithm: ln 2 mu - ln((1 - N^-e) / e).
  const double s = products / squares;
  const double ln_n = logarithm(n_vocab_);
  const double base = mu_ * ln2 - logarithm(ln_n * mean_decay((s - 1) * ln_n));
  const double most = logarithm(static_cast<double>(candidates.size()));
  // s = 0, if all are equally likely: in the limit none or all are kept.
  const double ln_k = s > 0 ? base / s : base > 0 ? most : 0;
  if (ln_k >= most) {
    std::ranges::sort(candidates, better);
    return;
  }
  const auto k = ln_k <= 0 ? 1 : static_cast<std::size_t>(1 / exponential(-ln_k));
  const auto kept = std::clamp<std::size_t>(k, 1, candidates.size());
  std::ranges::partial_sort(candidates, candidates.begin() + static_cast<std::ptrdiff_t>(kept),
                            better);
  candidates.resize(kept);
}

void mirostat::keep_unsurprising(std::vector<candidate>& candidates, double sum) const {
  const candidate best = std::ranges::min(candidates, better);
  // Nothing is more likely than 1, whose surprise is 0.
  const double least = mu_ > 0 ? sum * exponential(-mu_ * ln2) : sum;
  std::erase_if(candidates,
                [&](const candidate& c) { return c.weight < least && c.id != best.id; });
}

void mirostat::learn(double weight, double sum) {
  const double surprise = logarithm(sum / weight) / ln2;
  mu_ -= eta_ * (surprise - tau_);
}

}  // namespace bitnet::sampling

#include "eval/likelihood.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace bitnet::host::eval {

log_softmax::log_softmax(std::span<const float> logits) : logits_(logits) {
  const auto best = std::ranges::max_element(logits);
  best_ = static_cast<std::size_t>(best - logits.begin());
  const double top = *best;
  double sum = 0;
  for (const float x : logits) sum += std::exp(static_cast<double>(x) - top);
  log_sum_ = top + std::log(sum);
}

void running_mean::add(double x) {
  ++n_;
  const double before = x - mean_;
  mean_ += before / static_cast<double>(n_);
  squares_ += before * (x - mean_);
}

estimate running_mean::get() const {
  if (n_ < 2) return {mean_, 0};
  const auto n = static_cast<double>(n_);
  return {mean_, std::sqrt(squares_ / (n - 1) / n)};
}

void token_tally::add(double nll, std::size_t bytes) {
  nll_.add(nll);
  bytes_ += bytes;
  const auto size = static_cast<double>(bytes);
  sum_ += nll;
  squares_ += nll * nll;
  products_ += nll * size;
  bytes_squares_ += size * size;
}

estimate token_tally::perplexity() const {
  const estimate mean = nll_.get();
  const double value = std::exp(mean.value);
  return {value, value * mean.error};
}

estimate token_tally::bits_per_byte() const {
  const auto n = static_cast<double>(tokens());
  const auto size = static_cast<double>(bytes_);
  const double ratio = sum_ / size;  // nats
  // Sum of squared residuals: each token's nll minus `ratio` times its bytes. The residuals sum to
  // 0.
  const double rest = squares_ - 2 * ratio * products_ + ratio * ratio * bytes_squares_;
  const double error = n < 2 ? 0 : std::sqrt(std::max(rest, 0.0) * n / (n - 1)) / size;
  return {ratio / std::numbers::ln2, error / std::numbers::ln2};
}

uint64_t chunk_rule::n_chunks(uint64_t n_tokens, int64_t most) const {
  const uint64_t whole = n_tokens / n_context;
  return most < 0 ? whole : std::min(whole, static_cast<uint64_t>(most));
}

}  // namespace bitnet::host::eval

#include "generate/logprobs.hpp"

#include <algorithm>
#include <cmath>

#include "sampling/exponential.hpp"

namespace bitnet::generate {
namespace {

bool better(const logprob& a, const logprob& b) {
  return a.value != b.value ? a.value > b.value : a.id < b.id;
}

// The `n` largest logits, sorted, by a heap whose front is the worst.
void keep_largest(std::span<const float> logits, std::size_t n, std::vector<logprob>& out) {
  out.clear();
  if (n == 0) return;
  out.reserve(n);
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const logprob one{static_cast<int32_t>(i), double{logits[i]}};
    if (out.size() < n) {
      out.push_back(one);
      std::ranges::push_heap(out, better);
    } else if (one.value > out.front().value) {  // of equal ones the lower id stays
      std::ranges::pop_heap(out, better);
      out.back() = one;
      std::ranges::push_heap(out, better);
    }
  }
  std::ranges::sort_heap(out, better);
}

}  // namespace

void find_logprobs(std::span<const float> logits, int32_t chosen, uint32_t n, token_logprobs& out) {
  const auto at = static_cast<std::size_t>(std::ranges::max_element(logits) - logits.begin());
  const double most = logits[at];
  // The largest counts as 1. It stays out of the sum, so that a token that is nearly certain keeps
  // the digits of its distance to 1.
  double others = 0;
  for (std::size_t i = 0; i < logits.size(); ++i)
    if (i != at) others += sampling::exponential(logits[i] - most);
  const double log_sum = std::log1p(others);
  const auto value_of = [&](double logit) { return (logit - most) - log_sum; };
  out.chosen = value_of(logits[static_cast<std::size_t>(chosen)]);
  keep_largest(logits, std::min<std::size_t>(n, logits.size()), out.largest);
  for (logprob& one : out.largest) one.value = value_of(one.value);
}

}  // namespace bitnet::generate

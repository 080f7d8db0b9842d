#pragma once
// Log probabilities of a row of raw logits: before biases, grammar, penalties and temperature.

#include <cstdint>
#include <span>
#include <vector>

namespace bitnet::generate {

inline constexpr uint32_t most_logprobs = 20;

struct logprob {
  int32_t id = -1;
  double value = 0;  // natural logarithm, <= 0; -infinity if the logit is
};

struct token_logprobs {
  double chosen = 0;             // of the token that was sampled
  std::vector<logprob> largest;  // descending, of equals the lower id first
};

// Fills `out` with the log probabilities of `chosen` and of the `n` largest logits, or of all if
// the vocabulary has fewer. No logit is NaN or +infinity, and one is finite. O(n_vocab); no
// allocation after the first call with the same `out`.
void find_logprobs(std::span<const float> logits, int32_t chosen, uint32_t n, token_logprobs& out);

}  // namespace bitnet::generate

#pragma once
// Mirostat: keeps the surprise of the tokens, -log2 of their probabilities, at a target. It cuts
// off less likely tokens, and learns from each token that came.
//
// Exact   IEEE operations in one order, as the rest of the sampler.
// Source  Basu et al., "Mirostat", arXiv:2007.14966: algorithm 1; version 2 as in llama.cpp
//         (--mirostat 1 and 2).

#include <cstdint>
#include <vector>

#include "sampling/candidate.hpp"

namespace bitnet::sampling {

class mirostat {
 public:
  mirostat(float tau, float eta, uint32_t n_vocab);

  // Version 1: estimates the exponent of Zipf's law from the 100 most likely candidates, keeps as
  // many as it gives, and sorts them. Version 2: keeps candidates whose surprise is at most mu, and
  // sorts nothing. Both keep at least one. `sum`: of the weights.
  void keep_by_zipf(std::vector<candidate>& candidates) const;
  void keep_unsurprising(std::vector<candidate>& candidates, double sum) const;
  // Call it after the draw: `weight` of `sum` is the token's probability among the kept candidates.
  void learn(double weight, double sum);
  void reset() { mu_ = 2 * tau_; }

 private:
  double tau_, eta_;
  uint32_t n_vocab_;
  double mu_;  // bits
};

}  // namespace bitnet::sampling

#pragma once
// Mirostat: keeps the surprise of the tokens, -log2 of their probabilities, at a target, by cutting
// off what is less likely and learning from each token that came.
//
// Exact   IEEE operations in one order, as the rest of the sampler.
// Source  Basu et al., "Mirostat", arXiv:2007.14966: algorithm 1, and the second version as
//         llama.cpp has it (--mirostat 1 and 2).

#include <cstdint>
#include <vector>

#include "sampling/candidate.hpp"

namespace bitnet::sampling {

class mirostat {
 public:
  mirostat(float tau, float eta, uint32_t n_vocab);

  // Version 1: estimates the exponent of Zipf's law from the 100 most likely, and keeps as many
  // candidates as it gives; they are sorted then. Version 2: keeps those whose surprise is at most
  // mu, and sorts nothing. Both keep one at least. `sum` is that of the weights.
  void keep_by_zipf(std::vector<candidate>& candidates) const;
  void keep_unsurprising(std::vector<candidate>& candidates, double sum) const;
  // Behind the draw: the token's probability among those that were kept.
  void learn(double weight, double sum);
  void reset() { mu_ = 2 * tau_; }

 private:
  double tau_, eta_;
  uint32_t n_vocab_;
  double mu_;  // bits
};

}  // namespace bitnet::sampling

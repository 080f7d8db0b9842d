#pragma once
// Stages of the sampler that choose among candidates by their probabilities. Each keeps at least
// one candidate, and the order of those that it keeps.
//
// Needs    weights in proportion to the probabilities, none of them 0 and the largest 1, except
//          where a stage says that it looks at logits.
// Cost     linear in the candidates, and a sort of them for keep_typical.

#include <span>
#include <vector>

#include "sampling/candidate.hpp"

namespace bitnet::sampling {

// Gives each candidate its weight at a temperature > 0, with weight 1 for the highest logit, and
// drops candidates of weight 0. Returns the sum.
double weigh(std::vector<candidate>& candidates, double temperature);

// The least logit that top-n-sigma keeps: n standard deviations below the highest one. Tokens that
// are forbidden (-infinity, or a bias of `never`) do not count.
// Source: Tang et al., "Top-n sigma", arXiv:2411.07641.
[[nodiscard]] double least_within_sigma(std::span<const float> logits, float n);

// Keeps candidates whose information is nearest to the entropy until their probabilities sum up to
// more than p; of equally near ones the better first.
// Source: Meister et al., "Locally Typical Sampling", arXiv:2202.00666.
void keep_typical(std::vector<candidate>& candidates, float p);

// XTC: of the candidates with a probability of at least `threshold` only the least likely stays, of
// equals the one with the highest id; those below the threshold stay.
void exclude_top_choices(std::vector<candidate>& candidates, float threshold);

// The temperature of a row by its entropy: from temperature - range, at least 0, if one token is
// certain, to temperature + range if all are equally likely.
// Source: the "entropy" dynamic temperature of llama.cpp (--dynatemp-range, --dynatemp-exp).
struct dynamic_range {
  double temperature, range, exponent;
};
[[nodiscard]] double temperature_by_entropy(std::span<const candidate> candidates,
                                            const dynamic_range& of);

}  // namespace bitnet::sampling

#pragma once
// A token that may come, as the stages of the sampler pass it on.

#include <cstdint>
#include <vector>

namespace bitnet::sampling {

struct candidate {
  float logit;
  int32_t id;
  double weight = 0;  // its probability up to a common factor
};

// The order of the stages: the higher logit, of equals the lower id.
inline bool better(const candidate& a, const candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

// A bias or penalty that forbids a token, but lets it come if every other token is forbidden.
inline constexpr float never = -1e30F;

}  // namespace bitnet::sampling

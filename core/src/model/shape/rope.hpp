#pragma once
// How a model rotates queries and keys, and how the rotation is scaled beyond the context that it
// was first trained for. A backend gets only a base, a factor of positions and divisors of the
// angles (bitnet/abi/ops.h, ROPE), and the scale of attention.
//
// Source  docs/reference/rope-scaling.md, which names the papers.

#include <cstdint>
#include <vector>

namespace bitnet::model {

enum class stretch : uint8_t { none, linear, dynamic, yarn, longrope };

struct rope_scaling {
  stretch kind = stretch::none;
  float factor = 1;               // target context / original context
  uint32_t original_context = 0;  // tokens
  float magnitude = 1;      // queries and keys grow by it, so attention's logits by its square
  float extrapolation = 1;  // yarn: share of the short waves that stays unscaled
  float beta_fast = 32;     // yarn: waves with more turns in original_context stay unscaled,
  float beta_slow = 1;      // waves with fewer are scaled by all of factor
};

// Dynamic NTK: the base for a context of n_context tokens. Up to the original context: `base`.
float dynamic_base(const rope_scaling& how, float base, uint32_t dims, uint32_t n_context);

// YaRN: divisors of the angles of dims / 2 pairs, from 1 to how.factor.
std::vector<float> yarn_divisors(const rope_scaling& how, float base, uint32_t dims);

// YaRN's growth of queries and keys for a factor above 1.
float yarn_magnitude(float factor);

}  // namespace bitnet::model

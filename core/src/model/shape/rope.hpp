#pragma once
// How a model rotates queries and keys, and how the rotation is stretched past the length that it
// was first trained for. A backend sees a base, a factor of positions and divisors of the angles
// (bitnet/abi/ops.h, ROPE); everything here ends in those three and in the scale of attention.
//
// Source  docs/reference/rope-scaling.md, which names the papers.

#include <cstdint>
#include <vector>

namespace bitnet::model {

enum class stretch : uint8_t { none, linear, dynamic, yarn, longrope };

struct rope_scaling {
  stretch kind = stretch::none;
  float factor = 1;               // how many times the original context is meant to fit
  uint32_t original_context = 0;  // tokens
  float magnitude = 1;      // queries and keys grow by it, so attention's logits by its square
  float extrapolation = 1;  // yarn: share of the short waves that is left as it was
  float beta_fast = 32;     // yarn: waves that turn more often in original_context stay,
  float beta_slow = 1;      // those that turn less often are stretched by all of factor
};

// Dynamic NTK: the base of a context of n_context tokens. Within the original context: `base`.
float dynamic_base(const rope_scaling& how, float base, uint32_t dims, uint32_t n_context);

// YaRN: what the angle of each of dims / 2 pairs is divided by; 1 up to how.factor.
std::vector<float> yarn_divisors(const rope_scaling& how, float base, uint32_t dims);

// YaRN's growth of queries and keys for a factor above 1.
float yarn_magnitude(float factor);

}  // namespace bitnet::model

#pragma once
// From a row of logits to the next token.
//
// Order   logit bias, penalties, top-k, top-p, min-p, temperature, draw.
// Same    seed, same text on every platform: the generator is written out here, the distribution is
//         summed in double in one fixed order.
// Errors  BITNET_INVALID_ARGUMENT for parameters out of range; BITNET_INTERNAL for a NaN logit.
// Threads one at a time.

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace bitnet::sampling {

// Defaults are llama.cpp's. Meaning and units: bitnet_sampling in bitnet.h.
struct parameters {
  uint32_t seed = 0;
  float temperature = 0.8F;
  int32_t top_k = 40;
  float top_p = 0.95F;
  float min_p = 0.05F;
  float repeat_penalty = 1.0F;
  float presence_penalty = 0.0F;
  float frequency_penalty = 0.0F;
  int32_t repeat_last_n = 64;
  std::vector<std::pair<int32_t, float>> logit_bias;
};

class sampler {
 public:
  static result<sampler> make(const parameters& p, uint32_t n_vocab);
  sampler(sampler&&) noexcept;
  sampler& operator=(sampler&&) noexcept;
  ~sampler();

  // logits: (n_vocab).
  result<int32_t> sample(std::span<const float> logits);
  // Tells the penalties about a token of the sequence, prompt or generated.
  void accept(int32_t token);

 private:
  struct contents;
  explicit sampler(std::unique_ptr<contents> c);
  std::unique_ptr<contents> contents_;
};

}  // namespace bitnet::sampling

#pragma once
// Checks that a new copy of a backend computes what the old one does: logits of a short prompt.

#include <cstdint>

#include "base/result.hpp"
#include "engine/model_engines.hpp"

namespace bitnet::reload {

inline constexpr uint32_t default_prompt = 16;           // tokens
inline constexpr double default_tolerance = 1.0 / 1024;  // of the largest logit of a row

struct comparison {
  uint32_t tokens = 0;
  bool compared = false;  // false: the old copy failed, so only the new one was checked
  double difference = 0;  // the largest, relative to the largest logit of its row
};

// BITNET_REJECTED if the new logits are not finite or differ by more than `tolerance`.
result<comparison> compare(const engine::engine_ptr& old, const engine::engine_ptr& fresh,
                           uint32_t n_tokens, double tolerance);

}  // namespace bitnet::reload

#pragma once
// A whole model by its definitions: the slow, obvious forward pass of one sequence.

#include <cstdint>
#include <vector>

#include "model/model.hpp"

namespace bitnet::conformance {

// Logits of every token (tokens, vocabulary). KV elements are kept as f16, as the runner's pool
// does; composites are passed over, as their bodies follow.
std::vector<float> evaluate(const model& m, const std::vector<int32_t>& tokens, uint32_t window = 0,
                            uint32_t window_keep = 0);

}  // namespace bitnet::conformance

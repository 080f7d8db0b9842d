#pragma once
// How far ahead of their use weights are asked for.

#include <cstdint>

namespace bitnet::cpu {

// Bytes, where nothing was measured (ops/tuning.hpp). Less than a page: from there on some
// processors lose their own reading ahead, and a third of the memory's rate with it
// (docs/explain/kernel-ladder.md, In the order of memory).
inline constexpr uint32_t usual_ahead = 3072;

}  // namespace bitnet::cpu

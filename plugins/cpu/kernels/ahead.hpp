#pragma once
// Prefetch distance of weights.

#include <cstdint>

namespace bitnet::cpu {

// Bytes, if nothing was measured (ops/tuning.hpp). It is below a page: from a page on the hardware
// prefetcher of some processors stops, which costs a third of the memory's rate
// (docs/explain/kernel-ladder.md, In the order of memory).
inline constexpr uint32_t usual_ahead = 3072;

}  // namespace bitnet::cpu

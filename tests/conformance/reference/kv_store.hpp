#pragma once
// Keys and values as the canonical layout holds them (bitnet_kv_config in program.h).

#include <cstdint>
#include <span>
#include <vector>

#include "model/kv_types.hpp"

namespace bitnet::conformance {

// What KV_WRITE stores for one head of one token.
std::vector<uint8_t> kv_pack(uint32_t dtype, std::span<const float> x);
// Element i of it.
double kv_element(uint32_t dtype, const uint8_t* head, uint64_t i);

struct kv_layout {
  uint32_t dtype_k, dtype_v;
  uint64_t layers, heads, head_dim, block_tokens;

  uint64_t block_bytes() const;
  // Where a head of one token begins in a block.
  uint64_t at(bool value, uint64_t layer, uint64_t head, uint64_t token) const;
};

}  // namespace bitnet::conformance

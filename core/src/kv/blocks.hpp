#pragma once
// KV is kept in blocks of a fixed number of tokens. A table lists the blocks of a sequence in order
// of position; no_block stands where one was given back because no token attends to it any more.

#include <cstdint>

namespace bitnet::kv {

inline constexpr uint32_t block_tokens = 64;

inline constexpr uint32_t no_block = UINT32_MAX;

constexpr uint32_t blocks_for(uint64_t tokens) {
  return static_cast<uint32_t>((tokens + block_tokens - 1) / block_tokens);
}

}  // namespace bitnet::kv

#pragma once
// Computes how long a context may be.

#include <algorithm>
#include <cstdint>

namespace bitnet::model {

inline constexpr uint32_t largest_context = 1U << 20;  // tokens

// The longest context, in tokens, whose keys and values fit into `room_bytes`, where each
// `block_tokens` of them take `block_bytes`. At most largest_context; 0 if none fits.
[[nodiscard]] constexpr uint64_t max_context(uint64_t room_bytes, uint64_t block_bytes,
                                             uint32_t block_tokens) {
  if (block_bytes == 0) return 0;
  const uint64_t blocks = std::min<uint64_t>(room_bytes / block_bytes, largest_context);
  return std::min<uint64_t>(blocks * block_tokens, largest_context);
}

}  // namespace bitnet::model

#pragma once
// Settings of the memory pool that every GPU backend has, by the names that they have in BitNet-rs:
//
//   max_pool_size       bytes of steps and activations, used and cached together; with k, m, g (of
//                       1000) or K, M, G (of 1024) behind the number; 2G
//   max_cached_buffers  how many unused ones are kept; 0: none; 1000
//   cleanup_interval    seconds after which one that was not used again is freed; 30
//
// The environment has them as BITNET_<BACKEND>_MAX_POOL_SIZE and so on.

#include "backend.hpp"
#include "memory_pool.hpp"

namespace bitnet::gpu {

// BITNET_UNAVAILABLE, with what was expected, where a value is none; `out` keeps what is not set.
bitnet_status read_pool_settings(const settings& user, memory_pool_config& out,
                                 const sdk::reporter& report);

}  // namespace bitnet::gpu

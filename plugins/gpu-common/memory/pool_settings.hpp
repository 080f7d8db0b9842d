#pragma once
// Settings of the memory pool, for every GPU backend. The names are those of BitNet-rs.
//
//   max_pool_size       bytes of steps and activations, used and cached together; the number may
//                       have a suffix k, m, g (powers of 1000) or K, M, G (of 1024). Default 2G
//   max_cached_buffers  most unused buffers that are kept; 0: none. Default 1000
//   cleanup_interval    seconds after which an unused buffer is freed. Default 30
//
// The environment has them as BITNET_<BACKEND>_MAX_POOL_SIZE and so on.

#include "gpu-common/backend.hpp"
#include "memory_pool.hpp"

namespace bitnet::gpu {

// BITNET_UNAVAILABLE, with the expected form, for an invalid value; `out` keeps unset values.
bitnet_status read_pool_settings(const settings& user, memory_pool_config& out,
                                 const sdk::reporter& report);

}  // namespace bitnet::gpu

#pragma once
// Products by warp groups are the only kernels here that depend on how a device reads memory of a
// group by itself. When it is opened, and nothing takes its memory yet, it computes one product by
// them and by tiles.

#include "cuda_device.hpp"

namespace bitnet::cuda {

// Sets `same` to whether all tiled forms of linear_ternary give the same bits. Takes some 100 KB of
// memory for that time.
bitnet_status compare_tiled_forms(gpu::device& on, bool& same, const sdk::reporter& report);

}  // namespace bitnet::cuda

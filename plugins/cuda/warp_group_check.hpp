#pragma once
// Products by warp groups are the only kernels here that depend on how a device reads memory of a
// group by itself. Before they are used, a device computes one product by them and by tiles.

#include "cuda_device.hpp"

namespace bitnet::cuda {

// Sets `same` to whether all tiled forms of `made`, which has those by warp groups, give the same
// bits. Takes a millisecond or so and some 200 KB for that time.
bitnet_status compare_tiled_forms(gpu::device& on, const kernel& made, bool& same,
                                  const sdk::reporter& report);

}  // namespace bitnet::cuda

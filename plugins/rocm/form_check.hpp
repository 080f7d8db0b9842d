#pragma once
// Kernels whose work another one could do as well show that they give the same bits: on each device
// when it is opened, and nothing takes its memory yet. What differs is done without.

#include "device.hpp"

namespace bitnet::rocm {

// Adds to `wrong` those of optional_forms() that are not in `off` and have other bits than what is
// left without them. Takes some 300 KB of memory for that time.
bitnet_status check_forms(device& on, const forms& off, forms& wrong, const sdk::reporter& report);

}  // namespace bitnet::rocm

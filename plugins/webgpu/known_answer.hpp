#pragma once
// Whether an opened device computes: integers bit for bit, and floating point by the contract's
// rules. What an adapter says of itself is not believed before.

#include "device.hpp"

namespace bitnet::webgpu {

// BITNET_UNAVAILABLE if a number is wrong, and which.
bitnet_status check_answers(device& d, const sdk::reporter& report);

}  // namespace bitnet::webgpu

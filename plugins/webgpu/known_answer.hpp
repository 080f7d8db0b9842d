#pragma once
// Tests whether an opened device computes: integers bit for bit, and floating point by the
// contract's rules. An adapter's own report is not trusted without this test.

#include "device.hpp"

namespace bitnet::webgpu {

// BITNET_UNAVAILABLE, with the wrong number, if there is one.
bitnet_status check_answers(device& d, const sdk::reporter& report);

}  // namespace bitnet::webgpu

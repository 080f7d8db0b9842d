#pragma once
// What a loaded backend says about this machine, distrusted and copied.

#include <vector>

#include "plugin/backend.hpp"
#include "select/selection.hpp"

namespace bitnet::select {

// All devices with their kernels. BN-P-UNAVAILABLE and BN-P-NO-DEVICE (both BITNET_UNAVAILABLE),
// BN-P-FAILED, BN-P-ANSWER.
[[nodiscard]] plugin::checked<std::vector<device_report>> probe_devices(const plugin::backend& b);

}  // namespace bitnet::select

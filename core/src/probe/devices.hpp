#pragma once
// What an open backend says about this machine, distrusted and copied.

#include <vector>

#include "bitnet/abi/answers.h"
#include "compute/device.hpp"
#include "plugin/loading/backend.hpp"

namespace bitnet::probe {

// More than any machine has; a plugin that claims more has lost its mind.
constexpr uint32_t max_devices = BITNET_MOST_DEVICES;
constexpr uint32_t max_kernels = BITNET_MOST_KERNELS;  // of one device

struct device_report {
  bitnet_device_info info{};
  std::vector<bitnet_kernel_info> kernels;
  uint64_t products_per_s = 0;  // ternary ones, of a self-test's program; 0: not measured
  compute::activity status;     // when it was opened: a fact of that moment only
};

// All devices with their kernels. BN-P-UNAVAILABLE and BN-P-NO-DEVICE (both BITNET_UNAVAILABLE),
// BN-P-FAILED, BN-P-ANSWER.
[[nodiscard]] plugin::checked<std::vector<device_report>> list_devices(const plugin::backend& b);

}  // namespace bitnet::probe

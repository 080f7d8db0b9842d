#pragma once
// Reads and checks what an open backend reports about this machine.

#include <vector>

#include "bitnet/abi/answers.h"
#include "compute/device.hpp"
#include "plugin/loading/backend.hpp"

namespace bitnet::probe {

// More than any machine has; a plugin that reports more is rejected.
constexpr uint32_t max_devices = BITNET_MOST_DEVICES;
constexpr uint32_t max_kernels = BITNET_MOST_KERNELS;  // of one device

// Measured speed of the self-test: ternary products per second. 0: not measured.
struct product_rates {
  uint64_t small = 0;   // one token, 3 million products; on a GPU the launch dominates
  uint64_t token = 0;   // one token, 20 million products
  uint64_t prompt = 0;  // the same for 64 tokens at once

  friend bool operator==(const product_rates&, const product_rates&) = default;
};

struct device_report {
  bitnet_device_info info{};
  std::vector<bitnet_kernel_info> kernels;
  product_rates rates;
  compute::activity status;  // when it was opened; may be stale
};

// Lists all devices with their kernels. BN-P-UNAVAILABLE and BN-P-NO-DEVICE (both
// BITNET_UNAVAILABLE), BN-P-FAILED, BN-P-ANSWER.
[[nodiscard]] plugin::checked<std::vector<device_report>> list_devices(const plugin::backend& b);
// The kernels alone, of a device that list_devices() listed.
[[nodiscard]] plugin::checked<std::vector<bitnet_kernel_info>> list_kernels(
    const plugin::backend& b, uint32_t index);

}  // namespace bitnet::probe

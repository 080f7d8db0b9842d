#pragma once
// Facts that Level Zero reports about its devices, and which of them this backend can use.

#include <string>
#include <vector>

#include "gpu-common/driver.hpp"
#include "library.hpp"

namespace bitnet::level_zero {

struct device_facts {
  ze_driver_handle_t driver = nullptr;
  ze_device_handle_t handle = nullptr;
  ze_device_uuid_t uuid{};
  gpu::facts about;
  uint32_t compute_ordinal = 0;     // group of queues that run kernels
  double tick_ns = 0;               // of a kernel's time stamps
  uint64_t tick_mask = UINT64_MAX;  // valid bits of a time stamp
  std::string refusal;              // not empty: why this device cannot be used
};

// All devices of all drivers, in the loader's order. If none is usable, `why` says what the user
// can do.
std::vector<device_facts> list_devices(const library& calls, std::string& why);

}  // namespace bitnet::level_zero

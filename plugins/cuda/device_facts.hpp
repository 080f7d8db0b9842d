#pragma once
// Facts that the driver reports about its devices, and which devices this backend can use.

#include <string>
#include <vector>

#include "gpu-common/driver.hpp"
#include "library.hpp"

namespace bitnet::cuda {

struct device_facts {
  CUdevice id = 0;
  gpu::facts common;
  bool exclusive = false;     // one process at a time
  bool overlaps = false;      // kernels can start while the kernels before them compute
  bool warp_groups = false;   // it multiplies by warp groups (sm_90), and this build has kernels
  bool many_doubles = false;  // has_many_doubles()
  bool integrated = false;    // it shares the memory of the CPU
  std::string refusal;        // why this device cannot be used; empty: it can
};

// Lists all devices that the driver shows, in the order of the driver. If none of them is usable,
// `why` says what the user can do.
std::vector<device_facts> list_devices(const library& cu, std::string& why);

}  // namespace bitnet::cuda

#pragma once
// What the driver says about its devices, and which of them this backend can use.

#include <string>
#include <vector>

#include "gpu-common/driver.hpp"
#include "library.hpp"

namespace bitnet::cuda {

struct device_facts {
  CUdevice id = 0;
  gpu::facts common;
  bool exclusive = false;    // one process at a time
  bool overlaps = false;     // kernels can be launched while those before them compute
  bool warp_groups = false;  // it has sm_90's own tensor cores, and there are kernels for them
  bool integrated = false;   // its memory is the host's
  bool checks = true;        // forms are compared when it is opened
  std::string refusal;       // not empty: this device cannot be used, and why
};

// All devices that the driver shows, in its order. `why` says what the user can do when not one
// usable device is among them.
std::vector<device_facts> list_devices(const library& cu, std::string& why);

}  // namespace bitnet::cuda

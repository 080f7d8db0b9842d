#pragma once
// CUDA as one of gpu-common's platforms: opens the driver and lists its devices.

#include <memory>
#include <string>

#include "bitnet/abi/host.h"
#include "gpu-common/forms/forms.hpp"
#include "kernel_table.hpp"
#include "library.hpp"

namespace bitnet::cuda {

inline constexpr const char* usual_driver = "libcuda.so.1";

// Features that settings can switch off, and what the process is for.
struct permitted {
  bool overlap = true;      // kernels start while the kernels before them compute
  bool warp_groups = true;  // sm_90's own tensor cores are used
  gpu::form_use use = {};
};
// Returns nullptr if no device can be used; `why` then says what the user can do. The platform
// calls `log` until it is destroyed.
std::unique_ptr<gpu::platform> open_platform(const char* driver, const log_function& log,
                                             std::string& why, const permitted& may = {});

}  // namespace bitnet::cuda

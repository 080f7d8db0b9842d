#pragma once
// The way in: CUDA as one of gpu-common's platforms.

#include <memory>
#include <string>

#include "bitnet/abi/host.h"
#include "gpu-common/driver.hpp"
#include "library.hpp"

namespace bitnet::cuda {

inline constexpr const char* usual_driver = "libcuda.so.1";

// What a user may switch off.
struct permitted {
  bool overlap = true;      // kernels are launched while those before them compute
  bool warp_groups = true;  // sm_90's own tensor cores are used
  bool checks = true;       // forms of kernels are compared when a device is opened
};
// nullptr, and `why` says what the user can do, if no device can be used. `log` is called as long
// as the platform lives.
std::unique_ptr<gpu::platform> open_platform(const char* driver, const log_function& log,
                                             std::string& why, const permitted& may = {});

}  // namespace bitnet::cuda

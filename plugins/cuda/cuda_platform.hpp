#pragma once
// The way in: CUDA as one of gpu-common's platforms.

#include <functional>
#include <memory>
#include <string>

#include "bitnet/abi/host.h"
#include "gpu-common/driver.hpp"

namespace bitnet::cuda {

inline constexpr const char* usual_driver = "libcuda.so.1";

using log_function = std::function<void(uint32_t level, const std::string& message)>;

// nullptr, and `why` says what the user can do, if no device can be used.
std::unique_ptr<gpu::platform> open_platform(const char* driver, const log_function& log,
                                             std::string& why);

}  // namespace bitnet::cuda

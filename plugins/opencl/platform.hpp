#pragma once
// OpenCL as one of gpu-common's platforms.

#include <memory>
#include <string>
#include <vector>

#include "compiler.hpp"
#include "device_facts.hpp"
#include "gpu-common/driver.hpp"

namespace bitnet::opencl {

inline constexpr const char* usual_loader = "libOpenCL.so.1";

struct settings {
  std::string cache;  // folder of compiled kernels; "" or "off": none are kept
  log_function log;
};

// If no device can be used it returns nullptr, and `why` says what the user can do.
std::unique_ptr<gpu::platform> open_platform(const char* loader, settings wanted, std::string& why);

// For tests: removes abilities that a device reports, to select other forms of kernels.
using change_traits = void (*)(device_traits&);
std::unique_ptr<gpu::platform> open_platform(const char* loader, settings wanted, std::string& why,
                                             change_traits change);

}  // namespace bitnet::opencl

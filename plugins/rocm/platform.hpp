#pragma once
// The way in: ROCm as one of gpu-common's platforms.

#include <memory>
#include <string>

#include "gpu-common/forms/forms.hpp"
#include "library.hpp"

namespace bitnet::rocm {

// nullptr, and `why` says what the user can do, if no device can be used. `log` is called as long
// as the platform lives.
std::unique_ptr<gpu::platform> open_platform(const log_function& log, std::string& why,
                                             const gpu::form_use& use = {},
                                             const char* kfd = usual_kfd);

}  // namespace bitnet::rocm

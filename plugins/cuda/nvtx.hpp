#pragma once
// Reports ranges to profilers through NVTX. The NVTX headers load the tool library that
// NVTX_INJECTION64_PATH names and call it; the plugin is linked with no NVTX library.

#include "cuda_platform.hpp"

namespace bitnet::cuda {

// Returns the tool that the variable names, and loads it on the first call; nullptr if the variable
// is not set or no tool can be used, which is then logged. A process with raised privileges ignores
// the variable.
gpu::watcher* find_watcher(const log_function& log);

}  // namespace bitnet::cuda

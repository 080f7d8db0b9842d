#pragma once
// Ranges for profilers, by NVTX: its headers load the library that NVTX_INJECTION64_PATH names and
// call it. Nothing of NVTX is linked.

#include "cuda_platform.hpp"

namespace bitnet::cuda {

// The tool that the variable names, loaded when it is asked for first; nullptr without one. What is
// set and leads to none is reported in the log. With raised privileges it is ignored.
gpu::watcher* find_watcher(const log_function& log);

}  // namespace bitnet::cuda

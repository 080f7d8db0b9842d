#pragma once
// The NVIDIA driver, opened at run time, so that the plugin loads on a machine without it and can
// report what is missing. The build uses a header of the CUDA toolkit and none of its libraries.

#include <cuda.h>

#include <cstdint>
#include <memory>
#include <string>

#include "gpu-common/driver.hpp"

namespace bitnet::cuda {

using gpu::log_function;

// The only list of the driver calls that this backend makes. cuda.h defines some of the names as
// macros for versioned calls, such as cuMemAlloc_v2.
#define BITNET_CUDA_CALLS(X)   \
  X(cuInit)                    \
  X(cuDriverGetVersion)        \
  X(cuGetErrorName)            \
  X(cuDeviceGetCount)          \
  X(cuDeviceGet)               \
  X(cuDeviceGetName)           \
  X(cuDeviceGetAttribute)      \
  X(cuDeviceGetUuid)           \
  X(cuDeviceGetPCIBusId)       \
  X(cuDeviceTotalMem)          \
  X(cuDevicePrimaryCtxRetain)  \
  X(cuDevicePrimaryCtxRelease) \
  X(cuCtxPushCurrent)          \
  X(cuCtxPopCurrent)           \
  X(cuMemGetInfo)              \
  X(cuMemAlloc)                \
  X(cuMemFree)                 \
  X(cuMemHostAlloc)            \
  X(cuMemFreeHost)             \
  X(cuMemHostGetDevicePointer) \
  X(cuMemsetD32Async)          \
  X(cuMemcpyHtoDAsync)         \
  X(cuMemcpyDtoHAsync)         \
  X(cuModuleLoadData)          \
  X(cuModuleUnload)            \
  X(cuModuleGetFunction)       \
  X(cuFuncSetAttribute)        \
  X(cuTensorMapEncodeTiled)    \
  X(cuStreamCreate)            \
  X(cuStreamDestroy)           \
  X(cuStreamSynchronize)       \
  X(cuEventCreate)             \
  X(cuEventDestroy)            \
  X(cuEventRecord)             \
  X(cuEventQuery)              \
  X(cuEventElapsedTime)        \
  X(cuGraphCreate)             \
  X(cuGraphDestroy)            \
  X(cuGraphAddKernelNode)      \
  X(cuGraphAddMemcpyNode)      \
  X(cuGraphAddEventRecordNode) \
  X(cuGraphInstantiate)        \
  X(cuGraphExecDestroy)        \
  X(cuGraphLaunch)

// Calls that drivers before CUDA 12.3 lack; the backend works without them.
#define BITNET_CUDA_OPTIONAL_CALLS(X) X(cuGraphAddDependencies_v2)

// The calls of the open driver. The driver is never closed, because it starts threads that run its
// code.
struct library {
// NOLINTNEXTLINE(bugprone-macro-parentheses): names of members
#define BITNET_CUDA_MEMBER(name) decltype(&::name) name = nullptr;
  BITNET_CUDA_CALLS(BITNET_CUDA_MEMBER)
  BITNET_CUDA_OPTIONAL_CALLS(BITNET_CUDA_MEMBER)  // nullptr if the driver lacks it
#undef BITNET_CUDA_MEMBER
  int version = 0;  // 13000 is CUDA 13.0

  // Returns a text such as "CUDA_ERROR_OUT_OF_MEMORY (2)".
  std::string name_of(CUresult result) const;
};

// The oldest CUDA version of a driver that can load the kernels of this build: the major of the
// toolkit that compiled them.
inline constexpr int oldest_driver = CUDA_VERSION / 1000 * 1000;

// Opens the driver `file` and starts it. Returns nullptr if it is missing, too old or finds no
// device; `why` then says what the user can do.
std::unique_ptr<library> open_library(const char* file, std::string& why);

// The device node through which WSL provides the GPU of Windows.
inline constexpr const char* node_of_wsl = "/dev/dxg";

// Says that the driver `file` is missing, and what the user can do. `wsl`: node_of_wsl exists.
std::string not_installed(const char* file, bool wsl);

// Says that the driver shows no device, and what the user can do.
std::string no_device();

// Formats a version: 13000 is "13.0".
std::string version_text(int version);

}  // namespace bitnet::cuda

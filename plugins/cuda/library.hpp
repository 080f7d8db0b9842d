#pragma once
// The driver, opened when it is needed: a machine without one is an answer, not a plugin that
// cannot be loaded. Only the toolkit's header is used, none of its libraries.

#include <cuda.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace bitnet::cuda {

using log_function = std::function<void(uint32_t level, const std::string& message)>;

// Every call of the driver that this backend makes; the only list of them. cuda.h renames some to
// the version of the call that it declares.
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

// Calls that this backend goes without where the driver has not got them: drivers before CUDA 12.3.
#define BITNET_CUDA_OPTIONAL_CALLS(X) X(cuGraphAddDependencies_v2)

// The calls, once the driver is open. It stays open as long as the process runs: it starts threads
// whose code must not go away.
struct library {
// NOLINTNEXTLINE(bugprone-macro-parentheses): names of members
#define BITNET_CUDA_MEMBER(name) decltype(&::name) name = nullptr;
  BITNET_CUDA_CALLS(BITNET_CUDA_MEMBER)
  BITNET_CUDA_OPTIONAL_CALLS(BITNET_CUDA_MEMBER)  // nullptr where it is missing
#undef BITNET_CUDA_MEMBER
  int version = 0;  // 13000 is CUDA 13.0

  // "CUDA_ERROR_OUT_OF_MEMORY (2)".
  std::string name_of(CUresult result) const;
};

// What a driver must speak to run kernels of this build: those of an older major are not for it.
inline constexpr int oldest_driver = CUDA_VERSION / 1000 * 1000;

// Opens the driver of this file name and starts it. nullptr, and `why` says what the user can do,
// if it is not there, too old or finds nothing to drive.
std::unique_ptr<library> open_library(const char* file, std::string& why);

// By which WSL hands the GPU of Windows over.
inline constexpr const char* node_of_wsl = "/dev/dxg";

// Why there is no driver of this file name, and what the user can do. `wsl`: that node is there.
std::string not_installed(const char* file, bool wsl);

// Why the driver shows no device, and what the user can do.
std::string no_device();

// "13.0".
std::string version_text(int version);

}  // namespace bitnet::cuda

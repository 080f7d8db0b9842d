#pragma once
// Level Zero's loader, opened on first use, so that the plugin loads on a machine without one.

#include <level_zero/ze_api.h>

#include <memory>
#include <string>

namespace bitnet::level_zero {

// The only list of the Level Zero 1.0 calls that this backend makes.
#define BITNET_LEVEL_ZERO_CALLS(X)          \
  X(zeInit)                                 \
  X(zeDriverGet)                            \
  X(zeDriverGetProperties)                  \
  X(zeDeviceGet)                            \
  X(zeDeviceGetProperties)                  \
  X(zeDeviceGetComputeProperties)           \
  X(zeDeviceGetModuleProperties)            \
  X(zeDeviceGetMemoryProperties)            \
  X(zeDeviceGetCommandQueueGroupProperties) \
  X(zeContextCreate)                        \
  X(zeContextDestroy)                       \
  X(zeCommandListCreateImmediate)           \
  X(zeCommandListDestroy)                   \
  X(zeCommandListAppendBarrier)             \
  X(zeCommandListAppendMemoryCopy)          \
  X(zeCommandListAppendMemoryFill)          \
  X(zeCommandListAppendLaunchKernel)        \
  X(zeEventPoolCreate)                      \
  X(zeEventPoolDestroy)                     \
  X(zeEventCreate)                          \
  X(zeEventDestroy)                         \
  X(zeEventHostSynchronize)                 \
  X(zeEventQueryStatus)                     \
  X(zeEventHostReset)                       \
  X(zeEventQueryKernelTimestamp)            \
  X(zeMemAllocDevice)                       \
  X(zeMemAllocHost)                         \
  X(zeMemFree)                              \
  X(zeModuleCreate)                         \
  X(zeModuleDestroy)                        \
  X(zeModuleBuildLogGetString)              \
  X(zeModuleBuildLogDestroy)                \
  X(zeKernelCreate)                         \
  X(zeKernelDestroy)                        \
  X(zeKernelSetGroupSize)                   \
  X(zeKernelSetArgumentValue)

// The calls of the open loader. It is never unloaded, because drivers start threads that run its
// code.
struct library {
// NOLINTNEXTLINE(bugprone-macro-parentheses): names of members
#define BITNET_LEVEL_ZERO_MEMBER(name) decltype(&::name) name = nullptr;
  BITNET_LEVEL_ZERO_CALLS(BITNET_LEVEL_ZERO_MEMBER)
#undef BITNET_LEVEL_ZERO_MEMBER
  // Only newer loaders have it; else nullptr.
  decltype(&::zeDevicePciGetPropertiesExt) pci = nullptr;
  void* opened = nullptr;  // for calls of sysman.hpp
};

inline constexpr char usual_loader[] = "libze_loader.so.1";

// Opens the loader of this file name and initialises its drivers. Without a loader or a driver for
// a GPU it returns nullptr, and `why` says what the user can do. After zeInit has failed no other
// call is made: some drivers are unloaded by then, and the loader would jump into them.
std::unique_ptr<library> open_library(const char* file, std::string& why);

// The usual loader, opened once per process; the first result holds until the process ends.
const library* library_of_process(std::string& why);

// "ZE_RESULT_ERROR_DEVICE_LOST (0x70000001)".
std::string result_name(ze_result_t result);

}  // namespace bitnet::level_zero

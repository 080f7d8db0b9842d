#pragma once
// Level Zero's loader, opened when it is needed: a machine without one is an answer, not a plugin
// that cannot be loaded.

#include <level_zero/ze_api.h>

#include <memory>
#include <string>

namespace bitnet::level_zero {

// Every call of Level Zero 1.0 that this backend makes; the only list of them.
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

// The calls, once the loader is open. It stays open as long as the process runs: drivers start
// threads whose code must not go away.
struct library {
// NOLINTNEXTLINE(bugprone-macro-parentheses): names of members
#define BITNET_LEVEL_ZERO_MEMBER(name) decltype(&::name) name = nullptr;
  BITNET_LEVEL_ZERO_CALLS(BITNET_LEVEL_ZERO_MEMBER)
#undef BITNET_LEVEL_ZERO_MEMBER
  // Of newer loaders; nullptr where there is none.
  decltype(&::zeDevicePciGetPropertiesExt) pci = nullptr;
  void* opened = nullptr;  // for calls of sysman.hpp
};

inline constexpr char usual_loader[] = "libze_loader.so.1";

// Opens the loader of this file name, and initialises its drivers. nullptr, and `why` says what the
// user can do, if there is none, or no driver for a GPU. After zeInit has failed no other call is
// made: some drivers are unloaded by then, and the loader would jump into them.
std::unique_ptr<library> open_library(const char* file, std::string& why);

// The usual loader, opened once in a process: what it answered first holds as long as that runs.
const library* library_of_process(std::string& why);

// "ZE_RESULT_ERROR_DEVICE_LOST (0x70000001)".
std::string result_name(ze_result_t result);

}  // namespace bitnet::level_zero

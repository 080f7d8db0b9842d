#pragma once
// HIP's runtime, opened when it is needed: a machine without it is an answer, not a plugin that
// cannot be loaded.

#include <memory>
#include <string>

#include "gpu-common/driver.hpp"
#include "hip.hpp"

namespace bitnet::rocm {

using gpu::log_function;

// Every call of the runtime that this backend makes; the only list of them.
#define BITNET_ROCM_CALLS(X)                     \
  X(hipInit, hip_init)                           \
  X(hipDriverGetVersion, hip_get_number)         \
  X(hipGetErrorName, hip_name_of)                \
  X(hipGetDeviceCount, hip_get_number)           \
  X(hipGetDevice, hip_get_number)                \
  X(hipSetDevice, hip_set_device)                \
  X(hipDeviceGetName, hip_device_name)           \
  X(hipDeviceGetAttribute, hip_device_attribute) \
  X(hipDeviceGetPCIBusId, hip_device_name)       \
  X(hipDeviceTotalMem, hip_device_total)         \
  X(hipMemGetInfo, hip_memory_info)              \
  X(hipMalloc, hip_allocate)                     \
  X(hipFree, hip_free)                           \
  X(hipHostMalloc, hip_allocate_host)            \
  X(hipHostFree, hip_free)                       \
  X(hipHostGetDevicePointer, hip_host_pointer)   \
  X(hipMemsetD32Async, hip_set_words)            \
  X(hipMemcpyHtoDAsync, hip_copy_in)             \
  X(hipMemcpyDtoHAsync, hip_copy_out)            \
  X(hipMemcpyDtoDAsync, hip_copy_out)            \
  X(hipModuleLoadData, hip_load)                 \
  X(hipModuleUnload, hip_unload)                 \
  X(hipModuleGetFunction, hip_find)              \
  X(hipModuleLaunchKernel, hip_launch)           \
  X(hipStreamCreateWithFlags, hip_make_stream)   \
  X(hipStreamDestroy, hip_stream_call)           \
  X(hipStreamSynchronize, hip_stream_call)       \
  X(hipEventCreateWithFlags, hip_make_event)     \
  X(hipEventDestroy, hip_event_call)             \
  X(hipEventRecord, hip_record_event)            \
  X(hipEventQuery, hip_event_call)               \
  X(hipEventElapsedTime, hip_elapsed)

// Calls that some releases have: the UUID of a device, and its properties in one of two forms.
#define BITNET_ROCM_OPTIONAL_CALLS(X)                   \
  X(hipDeviceGetUuid, hip_device_uuid)                  \
  X(hipGetDevicePropertiesR0600, hip_device_properties) \
  X(hipGetDeviceProperties, hip_device_properties)

// The calls, once the runtime is open. It stays open as long as the process runs: it starts threads
// whose code must not go away.
struct library {
// NOLINTNEXTLINE(bugprone-macro-parentheses): names of members
#define BITNET_ROCM_MEMBER(name, type) type* name = nullptr;
  BITNET_ROCM_CALLS(BITNET_ROCM_MEMBER)
  BITNET_ROCM_OPTIONAL_CALLS(BITNET_ROCM_MEMBER)  // nullptr where it is missing
#undef BITNET_ROCM_MEMBER
  int version = 0;  // 50220730 is HIP 5.2

  // "hipErrorOutOfMemory (2)".
  std::string name_of(hipError_t result) const;
};

// The runtime's names, the newest first: releases of ROCm differ by the number.
inline constexpr const char* usual_runtimes[] = {"libamdhip64.so.7", "libamdhip64.so.6",
                                                 "libamdhip64.so.5"};

// Opens the first runtime that is installed and starts it. nullptr, and `why` says what the user
// can do, if there is none, it lacks a call, or it finds nothing to drive. `kfd` is the node of the
// kernel's driver.
std::unique_ptr<library> open_library(std::string& why, const char* kfd);
inline constexpr const char* usual_kfd = "/dev/kfd";

// Why the runtime finds no device, and what the user can do.
std::string no_device(const char* kfd);

// "HSA_OVERRIDE_GFX_VERSION=10.3.0" where that is set: the runtime takes devices for another
// target.
std::string target_override();

// "5.2".
std::string version_text(int version);

}  // namespace bitnet::rocm

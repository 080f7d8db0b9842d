#pragma once
// What this backend uses of HIP's C interface, which libamdhip64.so.5, .6 and .7 have alike: names
// and numbers of hip_runtime_api.h. Its structs are not used, since those differ.

#include <cstddef>
#include <cstdint>

namespace bitnet::rocm {

// NOLINTBEGIN(readability-identifier-naming): HIP's names
using hipError_t = int;  // an enumeration there; the library may answer more than has a name here
using hipStream_t = struct ihipStream_t*;
using hipEvent_t = struct ihipEvent_t*;
using hipModule_t = struct ihipModule_t*;
using hipFunction_t = struct ihipModuleSymbol_t*;
struct hipUUID {
  char bytes[16];
};

inline constexpr hipError_t hipSuccess = 0, hipErrorInvalidValue = 1, hipErrorOutOfMemory = 2,
                            hipErrorNotInitialized = 3, hipErrorDeinitialized = 4,
                            hipErrorInsufficientDriver = 35, hipErrorInvalidDeviceFunction = 98,
                            hipErrorNoDevice = 100, hipErrorInvalidDevice = 101,
                            hipErrorInvalidImage = 200, hipErrorNoBinaryForGpu = 209,
                            hipErrorECCNotCorrectable = 214, hipErrorInvalidKernelFile = 218,
                            hipErrorSharedObjectInitFailed = 303, hipErrorInvalidHandle = 400,
                            hipErrorNotFound = 500, hipErrorNotReady = 600,
                            hipErrorIllegalAddress = 700, hipErrorLaunchOutOfResources = 701,
                            hipErrorLaunchTimeOut = 702, hipErrorContextIsDestroyed = 709,
                            hipErrorAssert = 710, hipErrorLaunchFailure = 719,
                            hipErrorUnknown = 999, hipErrorRuntimeOther = 1053;

// hipDeviceAttribute_t
inline constexpr int hipDeviceAttributeMultiprocessorCount = 63,
                     hipDeviceAttributeMaxSharedMemoryPerBlock = 74,
                     hipDeviceAttributeWarpSize = 87;

inline constexpr unsigned int hipStreamNonBlocking = 1, hipEventDisableTiming = 2,
                              hipHostMallocPortable = 1, hipHostMallocMapped = 2,
                              hipHostMallocCoherent = 0x40000000;

extern "C" {
using hip_init = hipError_t(unsigned int);
using hip_get_number = hipError_t(int*);
using hip_set_device = hipError_t(int);
using hip_name_of = const char*(hipError_t);
using hip_device_name = hipError_t(char*, int, int);
using hip_device_attribute = hipError_t(int*, int, int);
using hip_device_uuid = hipError_t(hipUUID*, int);
using hip_device_total = hipError_t(size_t*, int);
using hip_device_properties = hipError_t(void*, int);
using hip_memory_info = hipError_t(size_t*, size_t*);
using hip_allocate = hipError_t(void**, size_t);
using hip_allocate_host = hipError_t(void**, size_t, unsigned int);
using hip_free = hipError_t(void*);
using hip_host_pointer = hipError_t(void**, void*, unsigned int);
using hip_set_words = hipError_t(void*, int, size_t, hipStream_t);
using hip_copy_in = hipError_t(void*, const void*, size_t, hipStream_t);
using hip_copy_out = hipError_t(void*, void*, size_t, hipStream_t);
using hip_load = hipError_t(hipModule_t*, const void*);
using hip_unload = hipError_t(hipModule_t);
using hip_find = hipError_t(hipFunction_t*, hipModule_t, const char*);
using hip_launch = hipError_t(hipFunction_t, unsigned int, unsigned int, unsigned int, unsigned int,
                              unsigned int, unsigned int, unsigned int, hipStream_t, void**,
                              void**);
using hip_make_stream = hipError_t(hipStream_t*, unsigned int);
using hip_stream_call = hipError_t(hipStream_t);
using hip_make_event = hipError_t(hipEvent_t*, unsigned int);
using hip_event_call = hipError_t(hipEvent_t);
using hip_record_event = hipError_t(hipEvent_t, hipStream_t);
using hip_elapsed = hipError_t(float*, hipEvent_t, hipEvent_t);
}
// NOLINTEND(readability-identifier-naming)

}  // namespace bitnet::rocm

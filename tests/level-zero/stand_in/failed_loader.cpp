// A loader of Level Zero whose drivers are gone when zeInit has failed, as some are: whatever is
// called then ends the process. The symbols are made by the assembler, as the header declares other
// types for them.

#include <cstdlib>

extern "C" {
// NOLINTNEXTLINE(readability-identifier-naming): as the interface has it
__attribute__((visibility("default"))) unsigned zeInit(unsigned) {
  return 0x78000001;  // ZE_RESULT_ERROR_UNINITIALIZED
}
__attribute__((visibility("default"))) void bitnet_called_too_late() {
  std::abort();
}
}

#define BITNET_TOO_LATE(name) asm(".globl " #name "\n.set " #name ", bitnet_called_too_late");
BITNET_TOO_LATE(zeDriverGet)
BITNET_TOO_LATE(zeDriverGetProperties)
BITNET_TOO_LATE(zeDeviceGet)
BITNET_TOO_LATE(zeDeviceGetProperties)
BITNET_TOO_LATE(zeDeviceGetComputeProperties)
BITNET_TOO_LATE(zeDeviceGetModuleProperties)
BITNET_TOO_LATE(zeDeviceGetMemoryProperties)
BITNET_TOO_LATE(zeDeviceGetCommandQueueGroupProperties)
BITNET_TOO_LATE(zeContextCreate)
BITNET_TOO_LATE(zeContextDestroy)
BITNET_TOO_LATE(zeCommandListCreateImmediate)
BITNET_TOO_LATE(zeCommandListDestroy)
BITNET_TOO_LATE(zeCommandListAppendBarrier)
BITNET_TOO_LATE(zeCommandListAppendMemoryCopy)
BITNET_TOO_LATE(zeCommandListAppendMemoryFill)
BITNET_TOO_LATE(zeCommandListAppendLaunchKernel)
BITNET_TOO_LATE(zeEventPoolCreate)
BITNET_TOO_LATE(zeEventPoolDestroy)
BITNET_TOO_LATE(zeEventCreate)
BITNET_TOO_LATE(zeEventDestroy)
BITNET_TOO_LATE(zeEventHostSynchronize)
BITNET_TOO_LATE(zeEventQueryStatus)
BITNET_TOO_LATE(zeEventHostReset)
BITNET_TOO_LATE(zeEventQueryKernelTimestamp)
BITNET_TOO_LATE(zeMemAllocDevice)
BITNET_TOO_LATE(zeMemAllocHost)
BITNET_TOO_LATE(zeMemFree)
BITNET_TOO_LATE(zeModuleCreate)
BITNET_TOO_LATE(zeModuleDestroy)
BITNET_TOO_LATE(zeModuleBuildLogGetString)
BITNET_TOO_LATE(zeModuleBuildLogDestroy)
BITNET_TOO_LATE(zeKernelCreate)
BITNET_TOO_LATE(zeKernelDestroy)
BITNET_TOO_LATE(zeKernelSetGroupSize)
BITNET_TOO_LATE(zeKernelSetArgumentValue)

#pragma once
// The functions of libvulkan.so.1, opened at run time, so that the plugin loads without it.

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan_core.h>

#include <string>

#include "bitnet/sdk/guard.hpp"

namespace bitnet::vulkan {

#define BITNET_VK_GLOBAL(X) \
  X(vkCreateInstance)       \
  X(vkEnumerateInstanceExtensionProperties)

#define BITNET_VK_INSTANCE(X)                 \
  X(vkDestroyInstance)                        \
  X(vkEnumeratePhysicalDevices)               \
  X(vkGetPhysicalDeviceProperties2)           \
  X(vkGetPhysicalDeviceFeatures2)             \
  X(vkGetPhysicalDeviceMemoryProperties)      \
  X(vkGetPhysicalDeviceMemoryProperties2)     \
  X(vkGetPhysicalDeviceQueueFamilyProperties) \
  X(vkEnumerateDeviceExtensionProperties)     \
  X(vkCreateDevice)                           \
  X(vkGetDeviceProcAddr)

#define BITNET_VK_DEVICE(X)        \
  X(vkDestroyDevice)               \
  X(vkGetDeviceQueue)              \
  X(vkDeviceWaitIdle)              \
  X(vkQueueSubmit)                 \
  X(vkCreateBuffer)                \
  X(vkDestroyBuffer)               \
  X(vkGetBufferMemoryRequirements) \
  X(vkAllocateMemory)              \
  X(vkFreeMemory)                  \
  X(vkBindBufferMemory)            \
  X(vkMapMemory)                   \
  X(vkCreateShaderModule)          \
  X(vkDestroyShaderModule)         \
  X(vkCreateDescriptorSetLayout)   \
  X(vkDestroyDescriptorSetLayout)  \
  X(vkCreatePipelineLayout)        \
  X(vkDestroyPipelineLayout)       \
  X(vkCreateComputePipelines)      \
  X(vkDestroyPipeline)             \
  X(vkCreateDescriptorPool)        \
  X(vkDestroyDescriptorPool)       \
  X(vkAllocateDescriptorSets)      \
  X(vkUpdateDescriptorSets)        \
  X(vkCreateCommandPool)           \
  X(vkDestroyCommandPool)          \
  X(vkAllocateCommandBuffers)      \
  X(vkBeginCommandBuffer)          \
  X(vkEndCommandBuffer)            \
  X(vkCmdBindPipeline)             \
  X(vkCmdBindDescriptorSets)       \
  X(vkCmdPushConstants)            \
  X(vkCmdDispatch)                 \
  X(vkCmdPipelineBarrier)          \
  X(vkCmdCopyBuffer)               \
  X(vkCmdFillBuffer)               \
  X(vkCmdResetQueryPool)           \
  X(vkCmdWriteTimestamp)           \
  X(vkCreateQueryPool)             \
  X(vkDestroyQueryPool)            \
  X(vkGetQueryPoolResults)         \
  X(vkCreateFence)                 \
  X(vkDestroyFence)                \
  X(vkResetFences)                 \
  X(vkGetFenceStatus)              \
  X(vkWaitForFences)               \
  X(vkCreateSemaphore)             \
  X(vkDestroySemaphore)

#define BITNET_VK_DECLARE(name) PFN_##name name = nullptr;

struct global_functions {
  PFN_vkGetInstanceProcAddr vkGetInstanceProcAddr = nullptr;
  BITNET_VK_GLOBAL(BITNET_VK_DECLARE)
};
struct instance_functions {
  BITNET_VK_INSTANCE(BITNET_VK_DECLARE)
  // nullptr without VK_EXT_debug_utils
  PFN_vkCreateDebugUtilsMessengerEXT vkCreateDebugUtilsMessengerEXT = nullptr;
  PFN_vkDestroyDebugUtilsMessengerEXT vkDestroyDebugUtilsMessengerEXT = nullptr;
};
struct device_functions {
  BITNET_VK_DEVICE(BITNET_VK_DECLARE)
  // nullptr without timeline semaphores
  PFN_vkWaitSemaphores vkWaitSemaphores = nullptr;
  PFN_vkGetSemaphoreCounterValue vkGetSemaphoreCounterValue = nullptr;
};

#undef BITNET_VK_DECLARE

// BITNET_UNAVAILABLE, with the package to install, if there is no libvulkan.so.1. The library is
// never closed, because drivers do not expect to be unloaded.
bitnet_status load(global_functions& out, const sdk::reporter& report);
// BITNET_UNAVAILABLE if a function is missing.
bitnet_status load(const global_functions& global, VkInstance instance, instance_functions& out,
                   const sdk::reporter& report);
bitnet_status load(const instance_functions& instance, VkDevice device, device_functions& out,
                   const sdk::reporter& report);

// Keeps the library of these functions loaded. The loader would unload the driver with the last
// instance: its thread-local destructors would dangle, and the next instance would load and start
// it again.
void keep_loaded(const device_functions& of) noexcept;

std::string name_of(VkResult result);

// Fails unless `result` is VK_SUCCESS; the error carries `result`.
bitnet_status check(VkResult result, const char* call, const sdk::reporter& report);

}  // namespace bitnet::vulkan

#pragma once
// What a Vulkan device can do, in the words of gpu-common.

#include <string>
#include <vector>

#include "forms.hpp"
#include "gpu-common/driver.hpp"
#include "vk.hpp"

namespace bitnet::vulkan {

// What only this plugin knows of a device.
struct physical {
  VkPhysicalDevice handle = VK_NULL_HANDLE;
  uint32_t queue_family = 0;
  uint32_t timestamp_bits = 0;
  float timestamp_ns = 1;           // of a tick
  bool timeline = false;            // has timeline semaphores
  bool timeline_extension = false;  // they are an extension, not core
  bool memory_budget = false;       // its driver reports how much memory is left
  forms kernels;
  VkPhysicalDeviceMemoryProperties memory{};
  uint32_t own_heap = BITNET_NONE;  // the largest of its own memory
};

// The driver's answers about one device. They point to each other: not to be moved.
class seen_device {
 public:
  seen_device(const instance_functions& vk, VkPhysicalDevice device);
  seen_device(const seen_device&) = delete;
  seen_device& operator=(const seen_device&) = delete;

  std::string name() const { return properties.properties.deviceName; }

  const instance_functions& vk;
  const VkPhysicalDevice handle;
  std::vector<VkExtensionProperties> extensions;
  bool has_pci = false, has_driver = false;  // whether those two were filled in
  VkPhysicalDevicePCIBusInfoPropertiesEXT pci{};
  VkPhysicalDeviceDriverProperties driver{};
  VkPhysicalDeviceMaintenance3Properties sizes{};
  VkPhysicalDeviceIDProperties ids{};
  VkPhysicalDeviceProperties2 properties{};
};

// "", or why the device cannot run the kernels.
std::string describe(const seen_device& seen, const wishes& user, physical& mine,
                     gpu::facts& about);

// Fills in the total and free bytes of its own memory, where its driver reports them.
void add_memory(const instance_functions& vk, const physical& device, bitnet_device_status& out);

}  // namespace bitnet::vulkan

#pragma once
// A Vulkan device's abilities, in gpu-common's terms.

#include <string>
#include <vector>

#include "forms.hpp"
#include "gpu-common/driver.hpp"
#include "library.hpp"

namespace bitnet::vulkan {

// Facts of a device that only this plugin uses.
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
  uint32_t own_heap = BITNET_NONE;  // the largest heap of its own memory
};

// The driver's reports about one device. The structs point to each other, so it must not be moved.
class seen_device {
 public:
  seen_device(const instance_functions& vk, VkPhysicalDevice device);
  seen_device(const seen_device&) = delete;
  seen_device& operator=(const seen_device&) = delete;

  std::string name() const { return properties.properties.deviceName; }

  const instance_functions& vk;
  const VkPhysicalDevice handle;
  std::vector<VkExtensionProperties> extensions;
  bool has_pci = false, has_driver = false;  // whether the struct below was filled in
  VkPhysicalDevicePCIBusInfoPropertiesEXT pci{};
  VkPhysicalDeviceDriverProperties driver{};
  VkPhysicalDeviceMaintenance3Properties sizes{};
  VkPhysicalDeviceIDProperties ids{};
  VkPhysicalDeviceProperties2 properties{};
};

// "", or why the device cannot run the kernels.
std::string describe(const seen_device& seen, const wishes& user, physical& mine,
                     gpu::facts& about);

// Fills in total and free bytes of the device's own memory, if its driver reports them.
void add_memory(const instance_functions& vk, const physical& device, bitnet_device_status& out);

}  // namespace bitnet::vulkan

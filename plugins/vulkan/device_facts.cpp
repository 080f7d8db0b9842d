#include "device_facts.hpp"

#include <algorithm>
#include <cstdio>

#include "bitnet/abi/info.h"
#include "gpu-common/device_text.hpp"
#include "gpu-common/kernels.hpp"

namespace bitnet::vulkan {
namespace {

const char* kind_of(VkPhysicalDeviceType type) {
  switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
      return "integrated";
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
      return "discrete";
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
      return "virtual";
    case VK_PHYSICAL_DEVICE_TYPE_CPU:
      return "software";
    default:
      return "other";
  }
}

// Threads of a work group. 64 is one or two waves everywhere. Software renderers switch between the
// vectors of a group at every barrier, so their group is one vector. Measured with llvmpipe of Mesa
// 22.3 on AVX2: twice the speed of 64.
constexpr uint32_t hardware_group = 64, software_group = 8;

// llvmpipe: a command costs 20 to 60 us, an element to normalise and quantise 20 ns.
constexpr uint32_t software_repeated = 4096;

// llvmpipe silently ends all loops of a thread after this number of passes together.
constexpr uint32_t llvmpipe_passes = 65535;

// A queue for computing only, if there is one: nothing else then waits behind a long step.
bool choose_queue(const seen_device& seen, physical& mine) {
  uint32_t n = 0;
  seen.vk.vkGetPhysicalDeviceQueueFamilyProperties(seen.handle, &n, nullptr);
  std::vector<VkQueueFamilyProperties> families(n);
  seen.vk.vkGetPhysicalDeviceQueueFamilyProperties(seen.handle, &n, families.data());
  const VkQueueFamilyProperties* chosen = nullptr;
  for (const VkQueueFamilyProperties& f : families) {
    if (!(f.queueFlags & VK_QUEUE_COMPUTE_BIT) || f.queueCount == 0) continue;
    if (!chosen || !(f.queueFlags & VK_QUEUE_GRAPHICS_BIT)) chosen = &f;
  }
  if (!chosen) return false;
  mine.queue_family = static_cast<uint32_t>(chosen - families.data());
  mine.timestamp_bits = chosen->timestampValidBits;
  mine.timestamp_ns = seen.properties.properties.limits.timestampPeriod;
  return true;
}

void find_timeline(const seen_device& seen, const wishes& user, physical& mine) {
  mine.timeline_extension = seen.properties.properties.apiVersion < VK_API_VERSION_1_2;
  if (!user.timeline) return;
  if (mine.timeline_extension &&
      !contains(seen.extensions, VK_KHR_TIMELINE_SEMAPHORE_EXTENSION_NAME))
    return;
  VkPhysicalDeviceTimelineSemaphoreFeatures timeline{};
  timeline.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES;
  VkPhysicalDeviceFeatures2 features{};
  features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  features.pNext = &timeline;
  seen.vk.vkGetPhysicalDeviceFeatures2(seen.handle, &features);
  mine.timeline = timeline.timelineSemaphore == VK_TRUE;
}

// Fills in the identity: name, class, address, versions.
void identify(const seen_device& seen, gpu::facts& about) {
  const VkPhysicalDeviceProperties& p = seen.properties.properties;
  about.name = p.deviceName;
  about.device_class = p.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU     ? BITNET_DEVICE_CPU
                       : p.deviceType == VK_PHYSICAL_DEVICE_TYPE_OTHER ? BITNET_DEVICE_OTHER
                                                                       : BITNET_DEVICE_GPU;
  about.uuid = gpu::uuid_text(seen.ids.deviceUUID);
  if (seen.has_pci) {
    char address[16];
    std::snprintf(address, sizeof address, "%04x:%02x:%02x.%x", seen.pci.pciDomain & 0xffffu,
                  seen.pci.pciBus & 0xffu, seen.pci.pciDevice & 0xffu, seen.pci.pciFunction & 0xfu);
    about.pci_address = address;
  }
  about.arch = std::string("vulkan ") + std::to_string(VK_API_VERSION_MAJOR(p.apiVersion)) + "." +
               std::to_string(VK_API_VERSION_MINOR(p.apiVersion)) + " " + kind_of(p.deviceType);
  about.driver_version = seen.has_driver && seen.driver.driverInfo[0] != 0
                             ? seen.driver.driverInfo
                             : std::to_string(p.driverVersion);
}

void limit(const seen_device& seen, physical& mine, gpu::facts& about) {
  const VkPhysicalDeviceLimits& limits = seen.properties.properties.limits;
  for (uint32_t i = 0; i < mine.memory.memoryHeapCount; ++i) {
    const VkMemoryHeap& heap = mine.memory.memoryHeaps[i];
    if ((heap.flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) == 0 ||
        heap.size <= about.memory_total_bytes)
      continue;
    about.memory_total_bytes = heap.size;
    mine.own_heap = i;
  }
  gpu::capabilities& can = about.capabilities;
  can.max_allocation_bytes = about.memory_total_bytes;
  if (seen.sizes.maxMemoryAllocationSize < can.max_allocation_bytes) {
    can.max_allocation_bytes = seen.sizes.maxMemoryAllocationSize;
    can.max_allocation_name = "maxMemoryAllocationSize";
  }
  can.max_binding_bytes = limits.maxStorageBufferRange;
  can.max_binding_name = "maxStorageBufferRange";
  can.binding_alignment =
      static_cast<uint32_t>(std::max<VkDeviceSize>(limits.minStorageBufferOffsetAlignment, 4));
  can.max_group_size =
      std::min(limits.maxComputeWorkGroupInvocations, limits.maxComputeWorkGroupSize[0]);
  can.max_groups = std::min(limits.maxComputeWorkGroupCount[0], limits.maxComputeWorkGroupCount[1]);
  can.shared_memory_bytes = limits.maxComputeSharedMemorySize;
  can.max_bindings = limits.maxPerStageDescriptorStorageBuffers;
}

// Fills in what suits the device: size of a group, forms of kernels, limits of a thread.
void tune(const seen_device& seen, const wishes& user, physical& mine, gpu::facts& about) {
  const bool software = about.device_class == BITNET_DEVICE_CPU;
  gpu::capabilities& can = about.capabilities;
  can.group_size = software ? software_group : hardware_group;
  mine.kernels = forms_of(seen.vk, seen.handle, seen.extensions, user, can.group_size);
  if (mine.kernels.subgroup > 1)
    about.arch += " subgroups of " + std::to_string(mine.kernels.subgroup);
  if (mine.kernels.dot_product) about.arch += " dot product";
  if (seen.has_driver && seen.driver.driverID == VK_DRIVER_ID_MESA_LLVMPIPE)
    about.quirks.max_passes = llvmpipe_passes;
  if (software) about.quirks.max_repeated = software_repeated;
  can.max_kept = software ? 64 : 16;  // a thread of a small group keeps more
}

}  // namespace

seen_device::seen_device(const instance_functions& functions, VkPhysicalDevice device)
    : vk(functions), handle(device) {
  uint32_t n = 0;
  vk.vkEnumerateDeviceExtensionProperties(device, nullptr, &n, nullptr);
  extensions.resize(n);
  vk.vkEnumerateDeviceExtensionProperties(device, nullptr, &n, extensions.data());
  extensions.resize(n);
  has_pci = contains(extensions, VK_EXT_PCI_BUS_INFO_EXTENSION_NAME);
  has_driver = contains(extensions, VK_KHR_DRIVER_PROPERTIES_EXTENSION_NAME);

  pci.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PCI_BUS_INFO_PROPERTIES_EXT;
  driver.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES;
  sizes.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES;
  ids.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES;
  ids.pNext = &sizes;
  properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
  properties.pNext = &ids;
  if (has_pci) {
    pci.pNext = sizes.pNext;
    sizes.pNext = &pci;
  }
  if (has_driver) {
    driver.pNext = sizes.pNext;
    sizes.pNext = &driver;
  }
  vk.vkGetPhysicalDeviceProperties2(device, &properties);
}

std::string describe(const seen_device& seen, const wishes& user, physical& mine,
                     gpu::facts& about) {
  if (seen.properties.properties.apiVersion < VK_API_VERSION_1_1)
    return "Vulkan 1.1 is needed; update the driver";
  mine.handle = seen.handle;
  seen.vk.vkGetPhysicalDeviceMemoryProperties(seen.handle, &mine.memory);
  if (!choose_queue(seen, mine)) return "it has no queue that computes";
  find_timeline(seen, user, mine);
  identify(seen, about);
  limit(seen, mine, about);
  mine.memory_budget = contains(seen.extensions, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
  tune(seen, user, mine, about);
  if (about.capabilities.max_bindings < gpu::max_kernel_bindings)
    return "a kernel needs " + std::to_string(gpu::max_kernel_bindings) +
           " storage buffers, it allows " + std::to_string(about.capabilities.max_bindings);
  return "";
}

// The budget of a heap is what this process may use, present use included, beside other programs.
void add_memory(const instance_functions& vk, const physical& device, bitnet_device_status& out) {
  if (!device.memory_budget || device.own_heap >= device.memory.memoryHeapCount) return;
  VkPhysicalDeviceMemoryBudgetPropertiesEXT budget{};
  budget.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT;
  VkPhysicalDeviceMemoryProperties2 memory{};
  memory.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2;
  memory.pNext = &budget;
  vk.vkGetPhysicalDeviceMemoryProperties2(device.handle, &memory);
  const uint64_t may = budget.heapBudget[device.own_heap];
  const uint64_t has = budget.heapUsage[device.own_heap];
  if (may == 0) return;  // the driver does not know: no heap has size 0
  out.known |= BITNET_STATUS_MEMORY;
  out.memory_total_bytes = device.memory.memoryHeaps[device.own_heap].size;
  out.memory_free_bytes = std::min(may - std::min(may, has), out.memory_total_bytes);
}

}  // namespace bitnet::vulkan

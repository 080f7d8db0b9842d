#include "platform.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "device.hpp"

namespace bitnet::vulkan {
namespace {

using sdk::failed;

// Messages of driver and layers belong to the host's log, not on its screen.
VKAPI_ATTR VkBool32 VKAPI_CALL pass_on(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                       VkDebugUtilsMessageTypeFlagsEXT,
                                       const VkDebugUtilsMessengerCallbackDataEXT* data,
                                       void* services) {
  const uint32_t level =
      severity & VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT ? BITNET_LOG_ERROR : BITNET_LOG_WARN;
  if (data && data->pMessage)
    static_cast<const sdk::host*>(services)->log(level, "vulkan driver", data->pMessage);
  return VK_FALSE;
}

VkDebugUtilsMessengerCreateInfoEXT messenger_info(const sdk::host& services) {
  VkDebugUtilsMessengerCreateInfoEXT info{};
  info.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT;
  info.messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT |
                         VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
  info.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_GENERAL_BIT_EXT |
                     VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT |
                     VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT;
  info.pfnUserCallback = pass_on;
  info.pUserData = const_cast<sdk::host*>(&services);  // comes back const
  return info;
}

std::string hex(const uint8_t* bytes, size_t n) {
  std::string out;
  for (size_t i = 0; i < n; ++i) {
    char pair[3];
    std::snprintf(pair, sizeof pair, "%02x", bytes[i]);
    out += pair;
    if (i == 3 || i == 5 || i == 7 || i == 9) out += '-';
  }
  return out;
}

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

// Threads of a work group. 64 is a wave or two everywhere; software renderers switch between the
// vectors of a group at every barrier, so there it is one vector (llvmpipe of Mesa 22.3 on AVX2:
// twice the speed of 64).
constexpr uint32_t hardware_group = 64, software_group = 8;

// A command costs llvmpipe 20 to 60 us, an element to normalise and quantise 20 ns.
constexpr uint32_t software_repeated = 4096;

// llvmpipe ends all loops of a thread after so many passes together, silently.
constexpr uint32_t llvmpipe_passes = 65535;

}  // namespace

platform::~platform() {
  if (messenger_) vk_.vkDestroyDebugUtilsMessengerEXT(instance_, messenger_, nullptr);
  if (instance_) vk_.vkDestroyInstance(instance_, nullptr);
}

bitnet_status platform::start(const sdk::reporter& report) {
  if (bitnet_status s = load(global_, report); failed(s)) return s;
  if (bitnet_status s = make_instance(report); failed(s)) return s;
  if (bitnet_status s = load(global_, instance_, vk_, report); failed(s)) return s;
  listen();
  return enumerate(report);
}

bitnet_status platform::make_instance(const sdk::reporter& report) {
  uint32_t n = 0;
  std::vector<VkExtensionProperties> known;
  if (global_.vkEnumerateInstanceExtensionProperties(nullptr, &n, nullptr) == VK_SUCCESS) {
    known.resize(n);
    if (global_.vkEnumerateInstanceExtensionProperties(nullptr, &n, known.data()) < 0) n = 0;
    known.resize(n);
  }
  const bool messages = contains(known, VK_EXT_DEBUG_UTILS_EXTENSION_NAME);
  const char* const extensions[] = {VK_EXT_DEBUG_UTILS_EXTENSION_NAME};
  const VkDebugUtilsMessengerCreateInfoEXT early = messenger_info(services_);
  VkApplicationInfo application{};
  application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
  application.pApplicationName = "bitnet";
  application.apiVersion = VK_API_VERSION_1_2;
  VkInstanceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  info.pApplicationInfo = &application;
  if (messages) {
    info.pNext = &early;
    info.enabledExtensionCount = 1;
    info.ppEnabledExtensionNames = extensions;
  }
  const VkResult made = global_.vkCreateInstance(&info, nullptr, &instance_);
  if (made == VK_SUCCESS) return BITNET_OK;
  instance_ = VK_NULL_HANDLE;
  if (made == VK_ERROR_INCOMPATIBLE_DRIVER)
    return report.fail(BITNET_UNAVAILABLE,
                       "there is a Vulkan loader, but no driver; install one, on Debian "
                       "mesa-vulkan-drivers or nvidia-vulkan-icd");
  return report.fail(BITNET_UNAVAILABLE, "vkCreateInstance: %s; update the Vulkan driver",
                     name_of(made).c_str());
}

void platform::listen() {
  if (!vk_.vkCreateDebugUtilsMessengerEXT || !vk_.vkDestroyDebugUtilsMessengerEXT) return;
  const VkDebugUtilsMessengerCreateInfoEXT info = messenger_info(services_);
  if (vk_.vkCreateDebugUtilsMessengerEXT(instance_, &info, nullptr, &messenger_) != VK_SUCCESS)
    messenger_ = VK_NULL_HANDLE;
}

bitnet_status platform::enumerate(const sdk::reporter& report) {
  uint32_t n = 0;
  std::vector<VkPhysicalDevice> all;
  VkResult found = vk_.vkEnumeratePhysicalDevices(instance_, &n, nullptr);
  if (found == VK_SUCCESS) {
    all.resize(n);
    found = vk_.vkEnumeratePhysicalDevices(instance_, &n, all.data());
  }
  if (found < 0)
    return report.fail(BITNET_UNAVAILABLE,
                       "vkEnumeratePhysicalDevices: %s; update the Vulkan driver",
                       name_of(found).c_str());
  all.resize(n);
  for (VkPhysicalDevice device : all) look_at(device);
  if (facts_.empty())
    return report.fail(BITNET_UNAVAILABLE,
                       "no Vulkan device of %u can run the kernels; install a driver for your GPU, "
                       "or mesa-vulkan-drivers for one in software",
                       n);
  return BITNET_OK;
}

void platform::look_at(VkPhysicalDevice device) {
  VkPhysicalDevicePCIBusInfoPropertiesEXT pci{};
  pci.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PCI_BUS_INFO_PROPERTIES_EXT;
  VkPhysicalDeviceDriverProperties driver{};
  driver.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES;
  VkPhysicalDeviceMaintenance3Properties sizes{};
  sizes.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES;
  VkPhysicalDeviceIDProperties ids{};
  ids.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES;
  ids.pNext = &sizes;
  VkPhysicalDeviceProperties2 properties{};
  properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
  properties.pNext = &ids;

  uint32_t n = 0;
  std::vector<VkExtensionProperties> extensions;
  vk_.vkEnumerateDeviceExtensionProperties(device, nullptr, &n, nullptr);
  extensions.resize(n);
  vk_.vkEnumerateDeviceExtensionProperties(device, nullptr, &n, extensions.data());
  extensions.resize(n);
  const bool has_pci = contains(extensions, VK_EXT_PCI_BUS_INFO_EXTENSION_NAME);
  const bool has_driver = contains(extensions, VK_KHR_DRIVER_PROPERTIES_EXTENSION_NAME);
  if (has_pci) {
    pci.pNext = sizes.pNext;
    sizes.pNext = &pci;
  }
  if (has_driver) {
    driver.pNext = sizes.pNext;
    sizes.pNext = &driver;
  }
  vk_.vkGetPhysicalDeviceProperties2(device, &properties);
  const VkPhysicalDeviceProperties& p = properties.properties;
  const VkPhysicalDeviceLimits& limits = p.limits;
  const auto refuse = [&](const std::string& why) {
    services_.log(BITNET_LOG_WARN, "vulkan", std::string(p.deviceName) + ": " + why);
  };
  if (p.apiVersion < VK_API_VERSION_1_1) return refuse("Vulkan 1.1 is needed; update the driver");

  physical mine;
  mine.handle = device;
  vk_.vkGetPhysicalDeviceMemoryProperties(device, &mine.memory);
  vk_.vkGetPhysicalDeviceQueueFamilyProperties(device, &n, nullptr);
  std::vector<VkQueueFamilyProperties> families(n);
  vk_.vkGetPhysicalDeviceQueueFamilyProperties(device, &n, families.data());
  // One for computing only, if there is one: nothing else then waits behind a long step.
  const VkQueueFamilyProperties* chosen = nullptr;
  for (const VkQueueFamilyProperties& f : families) {
    if (!(f.queueFlags & VK_QUEUE_COMPUTE_BIT) || f.queueCount == 0) continue;
    if (!chosen || !(f.queueFlags & VK_QUEUE_GRAPHICS_BIT)) chosen = &f;
  }
  if (!chosen) return refuse("it has no queue that computes");
  mine.queue_family = static_cast<uint32_t>(chosen - families.data());
  mine.timestamp_bits = chosen->timestampValidBits;
  mine.timestamp_ns = limits.timestampPeriod;

  VkPhysicalDeviceTimelineSemaphoreFeatures timeline{};
  timeline.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES;
  mine.timeline_extension = p.apiVersion < VK_API_VERSION_1_2;
  if (user_.timeline && (!mine.timeline_extension ||
                         contains(extensions, VK_KHR_TIMELINE_SEMAPHORE_EXTENSION_NAME))) {
    VkPhysicalDeviceFeatures2 features{};
    features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
    features.pNext = &timeline;
    vk_.vkGetPhysicalDeviceFeatures2(device, &features);
    mine.timeline = timeline.timelineSemaphore == VK_TRUE;
  }

  gpu::facts f;
  f.name = p.deviceName;
  f.device_class = p.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU     ? BITNET_DEVICE_CPU
                   : p.deviceType == VK_PHYSICAL_DEVICE_TYPE_OTHER ? BITNET_DEVICE_OTHER
                                                                   : BITNET_DEVICE_GPU;
  f.uuid = hex(ids.deviceUUID, sizeof ids.deviceUUID);
  if (has_pci) {
    char address[16];
    std::snprintf(address, sizeof address, "%04x:%02x:%02x.%x", pci.pciDomain & 0xffffu,
                  pci.pciBus & 0xffu, pci.pciDevice & 0xffu, pci.pciFunction & 0xfu);
    f.pci_address = address;
  }
  f.arch = std::string("vulkan ") + std::to_string(VK_API_VERSION_MAJOR(p.apiVersion)) + "." +
           std::to_string(VK_API_VERSION_MINOR(p.apiVersion)) + " " + kind_of(p.deviceType);
  f.driver_version =
      has_driver && driver.driverInfo[0] != 0 ? driver.driverInfo : std::to_string(p.driverVersion);
  for (uint32_t i = 0; i < mine.memory.memoryHeapCount; ++i)
    if (mine.memory.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT)
      f.memory_total_bytes = std::max(f.memory_total_bytes, mine.memory.memoryHeaps[i].size);
  f.max_allocation_bytes = std::min(sizes.maxMemoryAllocationSize, f.memory_total_bytes);
  f.max_binding_bytes = limits.maxStorageBufferRange;
  f.binding_alignment =
      static_cast<uint32_t>(std::max<VkDeviceSize>(limits.minStorageBufferOffsetAlignment, 4));
  f.max_group_size =
      std::min(limits.maxComputeWorkGroupInvocations, limits.maxComputeWorkGroupSize[0]);
  f.max_groups = std::min(limits.maxComputeWorkGroupCount[0], limits.maxComputeWorkGroupCount[1]);
  f.shared_memory_bytes = limits.maxComputeSharedMemorySize;
  const bool software = f.device_class == BITNET_DEVICE_CPU;
  f.group_size = software ? software_group : hardware_group;
  mine.kernels = forms_of(vk_, device, extensions, user_, f.group_size);
  if (mine.kernels.subgroup > 1) f.arch += " subgroups of " + std::to_string(mine.kernels.subgroup);
  if (mine.kernels.dot_product) f.arch += " dot product";
  if (has_driver && driver.driverID == VK_DRIVER_ID_MESA_LLVMPIPE) f.max_passes = llvmpipe_passes;
  if (software) f.max_repeated = software_repeated;
  f.max_kept = software ? 64 : 16;  // of so small a group each keeps more
  f.max_bindings = limits.maxPerStageDescriptorStorageBuffers;
  if (f.max_bindings < gpu::max_kernel_bindings)
    return refuse("a kernel needs " + std::to_string(gpu::max_kernel_bindings) +
                  " storage buffers, it allows " + std::to_string(f.max_bindings));
  facts_.push_back(std::move(f));
  physical_.push_back(mine);
}

bitnet_status platform::open(uint32_t index, std::unique_ptr<gpu::device>& out,
                             const sdk::reporter& report) {
  auto made = std::make_unique<device>(vk_, physical_[index], facts_[index]);
  if (bitnet_status s = made->start(report); failed(s)) return s;
  out = std::move(made);
  return BITNET_OK;
}

}  // namespace bitnet::vulkan

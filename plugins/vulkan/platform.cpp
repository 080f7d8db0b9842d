#include "platform.hpp"

#include "device.hpp"

namespace bitnet::vulkan {
namespace {

using sdk::failed;

// Messages of the driver and layers go to the host's log, not to standard error.
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
    return report.from("vulkan", made)
        .fail(BITNET_UNAVAILABLE,
              "there is a Vulkan loader, but no driver; install one, on Debian "
              "mesa-vulkan-drivers or nvidia-vulkan-icd");
  return report.from("vulkan", made)
      .fail(BITNET_UNAVAILABLE, "vkCreateInstance: %s; update the Vulkan driver",
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
    return report.from("vulkan", found)
        .fail(BITNET_UNAVAILABLE, "vkEnumeratePhysicalDevices: %s; update the Vulkan driver",
              name_of(found).c_str());
  all.resize(n);
  for (VkPhysicalDevice device : all) look_at(device);
  if (facts_.empty())
    return report.fail(
        BITNET_UNAVAILABLE,
        "none of %u Vulkan devices can run the kernels; install a driver for your GPU, "
        "or mesa-vulkan-drivers for one in software",
        n);
  return BITNET_OK;
}

void platform::look_at(VkPhysicalDevice device) {
  physical mine;
  gpu::facts about;
  const seen_device seen(vk_, device);
  const std::string why = describe(seen, user_, mine, about);
  if (!why.empty()) return services_.log(BITNET_LOG_WARN, "vulkan", seen.name() + ": " + why);
  facts_.push_back(std::move(about));
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

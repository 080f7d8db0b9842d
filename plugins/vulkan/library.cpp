#include "library.hpp"

#include <dlfcn.h>

namespace bitnet::vulkan {
namespace {

template <class Function, class Lookup>
bool find(Function& out, const char* name, const Lookup& lookup) {
  out = reinterpret_cast<Function>(lookup(name));
  return out != nullptr;
}

bitnet_status missing(const char* name, const sdk::reporter& report) {
  return report.fail(BITNET_UNAVAILABLE,
                     "the Vulkan driver has no %s, Vulkan 1.1 is needed; update the driver", name);
}

}  // namespace

bitnet_status load(global_functions& out, const sdk::reporter& report) {
  void* library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return report.fail(BITNET_UNAVAILABLE,
                       "libvulkan.so.1 cannot be opened (%s); install the Vulkan loader and a "
                       "driver, on Debian libvulkan1 and mesa-vulkan-drivers",
                       dlerror());
  if (!find(out.vkGetInstanceProcAddr, "vkGetInstanceProcAddr",
            [&](const char* name) { return dlsym(library, name); }))
    return missing("vkGetInstanceProcAddr", report);
  const auto lookup = [&](const char* name) { return out.vkGetInstanceProcAddr(nullptr, name); };
#define BITNET_VK_FIND(name) \
  if (!find(out.name, #name, lookup)) return missing(#name, report);
  BITNET_VK_GLOBAL(BITNET_VK_FIND)
  return BITNET_OK;
}

bitnet_status load(const global_functions& global, VkInstance instance, instance_functions& out,
                   const sdk::reporter& report) {
  const auto lookup = [&](const char* name) {
    return global.vkGetInstanceProcAddr(instance, name);
  };
  BITNET_VK_INSTANCE(BITNET_VK_FIND)
  find(out.vkCreateDebugUtilsMessengerEXT, "vkCreateDebugUtilsMessengerEXT", lookup);
  find(out.vkDestroyDebugUtilsMessengerEXT, "vkDestroyDebugUtilsMessengerEXT", lookup);
  return BITNET_OK;
}

bitnet_status load(const instance_functions& instance, VkDevice device, device_functions& out,
                   const sdk::reporter& report) {
  const auto lookup = [&](const char* name) { return instance.vkGetDeviceProcAddr(device, name); };
  BITNET_VK_DEVICE(BITNET_VK_FIND)
#undef BITNET_VK_FIND
  if (!find(out.vkWaitSemaphores, "vkWaitSemaphores", lookup))
    find(out.vkWaitSemaphores, "vkWaitSemaphoresKHR", lookup);
  if (!find(out.vkGetSemaphoreCounterValue, "vkGetSemaphoreCounterValue", lookup))
    find(out.vkGetSemaphoreCounterValue, "vkGetSemaphoreCounterValueKHR", lookup);
  return BITNET_OK;
}

void keep_loaded(const device_functions& of) noexcept {
  Dl_info found{};
  if (dladdr(reinterpret_cast<const void*>(of.vkQueueSubmit), &found) == 0 || !found.dli_fname)
    return;
  dlopen(found.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
}

std::string name_of(VkResult result) {
  switch (result) {
    case VK_ERROR_OUT_OF_HOST_MEMORY:
      return "VK_ERROR_OUT_OF_HOST_MEMORY";
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
      return "VK_ERROR_OUT_OF_DEVICE_MEMORY";
    case VK_ERROR_INITIALIZATION_FAILED:
      return "VK_ERROR_INITIALIZATION_FAILED";
    case VK_ERROR_DEVICE_LOST:
      return "VK_ERROR_DEVICE_LOST";
    case VK_ERROR_INCOMPATIBLE_DRIVER:
      return "VK_ERROR_INCOMPATIBLE_DRIVER";
    case VK_ERROR_FEATURE_NOT_PRESENT:
      return "VK_ERROR_FEATURE_NOT_PRESENT";
    case VK_ERROR_EXTENSION_NOT_PRESENT:
      return "VK_ERROR_EXTENSION_NOT_PRESENT";
    default:
      return "VkResult " + std::to_string(static_cast<int>(result));
  }
}

bitnet_status check(VkResult result, const char* call, const sdk::reporter& plain) {
  const sdk::reporter report = plain.from("vulkan", result);
  switch (result) {
    case VK_SUCCESS:
      return BITNET_OK;
    case VK_ERROR_OUT_OF_HOST_MEMORY:
      return report.fail(BITNET_OUT_OF_MEMORY, "%s: the driver has no host memory left", call);
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
      return report.fail(BITNET_OUT_OF_DEVICE_MEMORY,
                         "%s: no device memory left; use a smaller model, context or "
                         "batch, or request another device",
                         call);
    case VK_ERROR_DEVICE_LOST:
      return report.fail(BITNET_DEVICE_LOST,
                         "%s: the device is lost; open it again, or request another device", call);
    default:
      return report.fail(BITNET_INTERNAL, "%s: %s; update the driver, or take another device", call,
                         name_of(result).c_str());
  }
}

}  // namespace bitnet::vulkan

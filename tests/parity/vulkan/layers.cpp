// Added to the suites that run on plugins/vulkan: nothing that they do may make the driver or a
// layer complain. Where the environment turns the validation layer on (VK_INSTANCE_LAYERS), a
// planted mistake must be seen first; without that layer the run is skipped.

#define VK_NO_PROTOTYPES
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <vulkan/vulkan_core.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "host.hpp"

namespace bitnet::parity {
namespace {

constexpr const char* layer = "VK_LAYER_KHRONOS_validation";

[[noreturn]] void skip(const std::string& why) {
  std::printf("skipped: %s\n", why.c_str());
  std::fflush(stdout);
  std::_Exit(77);
}

VKAPI_ATTR VkBool32 VKAPI_CALL count(VkDebugUtilsMessageSeverityFlagBitsEXT,
                                     VkDebugUtilsMessageTypeFlagsEXT,
                                     const VkDebugUtilsMessengerCallbackDataEXT*, void* seen) {
  ++*static_cast<int*>(seen);
  return VK_FALSE;
}

// How many messages an instance without its first member brings.
int messages_of_a_mistake() {
  void* library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) skip("no libvulkan.so.1");
  const auto find =
      reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(library, "vkGetInstanceProcAddr"));
  const auto list = reinterpret_cast<PFN_vkEnumerateInstanceLayerProperties>(
      find(nullptr, "vkEnumerateInstanceLayerProperties"));
  uint32_t n = 0;
  list(&n, nullptr);
  std::vector<VkLayerProperties> layers(n);
  list(&n, layers.data());
  bool there = false;
  for (const VkLayerProperties& l : layers) there |= std::string(l.layerName) == layer;
  if (!there) skip(std::string(layer) + " is not installed (Debian: vulkan-validationlayers)");

  int seen = 0;
  VkDebugUtilsMessengerCreateInfoEXT messenger{};
  messenger.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT;
  messenger.messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
  messenger.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT;
  messenger.pfnUserCallback = count;
  messenger.pUserData = &seen;
  const char* const extensions[] = {VK_EXT_DEBUG_UTILS_EXTENSION_NAME};
  VkInstanceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  info.pNext = &messenger;
  info.flags = 0x40000000;  // the mistake: an unknown flag
  info.enabledExtensionCount = 1;
  info.ppEnabledExtensionNames = extensions;
  VkInstance instance = VK_NULL_HANDLE;
  const auto create = reinterpret_cast<PFN_vkCreateInstance>(find(nullptr, "vkCreateInstance"));
  if (create(&info, nullptr, &instance) == VK_SUCCESS)
    reinterpret_cast<PFN_vkDestroyInstance>(find(instance, "vkDestroyInstance"))(instance, nullptr);
  return seen;
}

class quiet : public testing::Environment {
  void SetUp() override {
    const char* asked = std::getenv("VK_INSTANCE_LAYERS");
    if (!asked || std::string(asked).find(layer) == std::string::npos) return;
    ASSERT_GT(messages_of_a_mistake(), 0) << "the layer is there, but sees nothing";
  }
  void TearDown() override {
    const std::scoped_lock lock(tiny_host::complaints_lock);
    for (const std::string& complaint : tiny_host::complaints)
      if (complaint.find("env var 'VK_INSTANCE_LAYERS' defined") == std::string::npos)
        ADD_FAILURE() << complaint;
  }
};

[[maybe_unused]] const auto* const watching = testing::AddGlobalTestEnvironment(new quiet);

}  // namespace
}  // namespace bitnet::parity

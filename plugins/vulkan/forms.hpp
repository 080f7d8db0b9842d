#pragma once
// Which forms of the kernels (kernels/common.glsl) a device can run: found out from what it
// reports, before it is opened.

#include <cstring>
#include <vector>

#include "vk.hpp"

namespace bitnet::vulkan {

// What the user asks for.
struct wishes {
  bool timeline = true;   // false: as if no device had timeline semaphores
  bool subgroups = true;  // false: as if no device had subgroups
  enum class dot : uint8_t { fast, never, always } dot_product = dot::fast;  // always: if it can
};

struct forms {
  uint32_t subgroup = 1;     // threads of a subgroup that kernels count on; 1: they use none
  bool fixed_size = false;   // the device has one size of subgroups, and none can be asked for
  bool dot_product = false;  // four products of bytes in one instruction
};

inline bool contains(const std::vector<VkExtensionProperties>& all, const char* name) {
  for (const VkExtensionProperties& e : all)
    if (std::strcmp(e.extensionName, name) == 0) return true;
  return false;
}

// `most` is the greatest number of threads in a group.
forms forms_of(const instance_functions& vk, VkPhysicalDevice device,
               const std::vector<VkExtensionProperties>& extensions, const wishes& user,
               uint32_t most);

// What vkCreateDevice gets of them. Lives until it has returned.
class forms_request {
 public:
  forms_request(const forms& f, VkDeviceCreateInfo& info, std::vector<const char*>& names);
  forms_request(const forms_request&) = delete;
  forms_request& operator=(const forms_request&) = delete;

 private:
  VkPhysicalDeviceSubgroupSizeControlFeatures sizes_{};
  VkPhysicalDeviceShaderIntegerDotProductFeatures dots_{};
};

}  // namespace bitnet::vulkan

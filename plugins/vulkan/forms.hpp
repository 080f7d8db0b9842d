#pragma once
// Finds which forms of the kernels (kernels/common.glsl) a device can run, from its reports, before
// it is opened.

#include <cstring>
#include <vector>

#include "library.hpp"

namespace bitnet::vulkan {

// Settings of the user.
struct wishes {
  bool timeline = true;   // false: as if no device had timeline semaphores
  bool subgroups = true;  // false: as if no device had subgroups
  enum class dot : uint8_t { fast, never, always } dot_product = dot::fast;  // always: if supported
};

struct forms {
  uint32_t subgroup = 1;     // threads of a subgroup that kernels rely on; 1: kernels use none
  bool fixed_size = false;   // subgroups have one size, which cannot be requested
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

// Feature structs for vkCreateDevice. Must live until that call has returned.
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

#include "forms.hpp"

#include <bit>

namespace bitnet::vulkan {
namespace {

// Queries a device for a struct of features.
template <class Features>
Features features_of(const instance_functions& vk, VkPhysicalDevice device, VkStructureType type) {
  Features out{};
  out.sType = type;
  VkPhysicalDeviceFeatures2 all{};
  all.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  all.pNext = &out;
  vk.vkGetPhysicalDeviceFeatures2(device, &all);
  return out;
}
template <class Properties>
Properties properties_of(const instance_functions& vk, VkPhysicalDevice device,
                         VkStructureType type) {
  Properties out{};
  out.sType = type;
  VkPhysicalDeviceProperties2 all{};
  all.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
  all.pNext = &out;
  vk.vkGetPhysicalDeviceProperties2(device, &all);
  return out;
}

// Kernels derive thread numbers from subgroups, so all subgroups must be full and of a known size.
// A device that cannot guarantee it runs the plain forms.
void find_subgroups(const instance_functions& vk, VkPhysicalDevice device, uint32_t most,
                    forms& out) {
  const auto can = features_of<VkPhysicalDeviceSubgroupSizeControlFeatures>(
      vk, device, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES);
  const auto sizes = properties_of<VkPhysicalDeviceSubgroupSizeControlProperties>(
      vk, device, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES);
  const auto usual = properties_of<VkPhysicalDeviceSubgroupProperties>(
      vk, device, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES);

  constexpr VkSubgroupFeatureFlags needed =
      VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_SHUFFLE_BIT;
  const bool exchanges = (usual.supportedOperations & needed) == needed &&
                         (usual.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0;
  const bool asked_for = (sizes.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0;
  const uint32_t size = usual.subgroupSize;
  const bool fixed = sizes.minSubgroupSize == size && sizes.maxSubgroupSize == size;
  if (!exchanges || !can.subgroupSizeControl || !can.computeFullSubgroups ||
      (!asked_for && !fixed) || !std::has_single_bit(size) || size > most ||
      most / size > sizes.maxComputeWorkgroupSubgroups)
    return;
  out.subgroup = size;
  out.fixed_size = !asked_for;
}

bool multiplies_fast(const instance_functions& vk, VkPhysicalDevice device, bool always) {
  const auto can = features_of<VkPhysicalDeviceShaderIntegerDotProductFeatures>(
      vk, device, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES);
  const auto fast = properties_of<VkPhysicalDeviceShaderIntegerDotProductProperties>(
      vk, device, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_PROPERTIES);
  return can.shaderIntegerDotProduct &&
         (always || fast.integerDotProduct4x8BitPackedSignedAccelerated);
}

}  // namespace

forms forms_of(const instance_functions& vk, VkPhysicalDevice device,
               const std::vector<VkExtensionProperties>& extensions, const wishes& user,
               uint32_t most) {
  forms out;
  if (user.subgroups && contains(extensions, VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME))
    find_subgroups(vk, device, most, out);
  if (user.dot_product != wishes::dot::never &&
      contains(extensions, VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME))
    out.dot_product = multiplies_fast(vk, device, user.dot_product == wishes::dot::always);
  return out;
}

forms_request::forms_request(const forms& f, VkDeviceCreateInfo& info,
                             std::vector<const char*>& names) {
  if (f.subgroup > 1) {
    names.push_back(VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME);
    sizes_.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES;
    sizes_.subgroupSizeControl = VK_TRUE;
    sizes_.computeFullSubgroups = VK_TRUE;
    sizes_.pNext = const_cast<void*>(info.pNext);  // as the API has it in one place, not in another
    info.pNext = &sizes_;
  }
  if (f.dot_product) {
    names.push_back(VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME);
    dots_.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES;
    dots_.shaderIntegerDotProduct = VK_TRUE;
    dots_.pNext = const_cast<void*>(info.pNext);
    info.pNext = &dots_;
  }
}

}  // namespace bitnet::vulkan

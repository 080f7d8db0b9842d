#include "memory.hpp"

namespace bitnet::vulkan {

using sdk::failed;

memory::~memory() {
  const device_functions& vk = device_.vk();
  vk.vkDestroyBuffer(device_.handle(), buffer_, nullptr);
  vk.vkFreeMemory(device_.handle(), memory_, nullptr);  // unmaps it, too
}

bitnet_status memory::allocate(uint64_t bytes, gpu::memory_place where,
                               const sdk::reporter& report) {
  const device_functions& vk = device_.vk();
  VkBufferCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  info.size = bytes;
  info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
               VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  info.sharingMode = VK_SHARING_MODE_EXCLUSIVE;
  if (bitnet_status s = check(vk.vkCreateBuffer(device_.handle(), &info, nullptr, &buffer_),
                              "vkCreateBuffer", report);
      failed(s)) {
    buffer_ = VK_NULL_HANDLE;
    return s;
  }
  VkMemoryRequirements needs{};
  vk.vkGetBufferMemoryRequirements(device_.handle(), buffer_, &needs);
  constexpr VkMemoryPropertyFlags seen =
      VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  const bool host = where == gpu::memory_place::host;
  // The host reads logits, so its memory is cached if possible. Weights go to the device's own
  // memory, or else to any memory.
  const bool taken =
      host ? take(needs, seen | VK_MEMORY_PROPERTY_HOST_CACHED_BIT) || take(needs, seen)
           : take(needs, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT) || take(needs, 0);
  if (!taken)
    return report.fail(BITNET_OUT_OF_DEVICE_MEMORY,
                       "no %s memory left for %llu bytes; use a smaller model, context or "
                       "batch, or request another device",
                       host ? "host-visible" : "device", static_cast<unsigned long long>(bytes));
  if (bitnet_status s = check(vk.vkBindBufferMemory(device_.handle(), buffer_, memory_, 0),
                              "vkBindBufferMemory", report);
      failed(s))
    return s;
  bytes_ = bytes;
  if (!host) return BITNET_OK;
  return check(vk.vkMapMemory(device_.handle(), memory_, 0, VK_WHOLE_SIZE, 0, &mapped_),
               "vkMapMemory", report);
}

bool memory::take(const VkMemoryRequirements& needs, VkMemoryPropertyFlags flags) {
  const VkPhysicalDeviceMemoryProperties& all = device_.about().memory;
  for (uint32_t i = 0; i < all.memoryTypeCount; ++i) {
    if ((needs.memoryTypeBits >> i & 1) == 0 || (all.memoryTypes[i].propertyFlags & flags) != flags)
      continue;
    VkMemoryAllocateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
    info.allocationSize = needs.size;
    info.memoryTypeIndex = i;
    if (device_.vk().vkAllocateMemory(device_.handle(), &info, nullptr, &memory_) == VK_SUCCESS)
      return true;
    memory_ = VK_NULL_HANDLE;
  }
  return false;
}

}  // namespace bitnet::vulkan

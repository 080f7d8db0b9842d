#pragma once
// A buffer with memory of its own. plugins/gpu-common already puts small tensors into shared
// buffers, so there are few of them.

#include "device.hpp"

namespace bitnet::vulkan {

class memory final : public gpu::buffer {
 public:
  explicit memory(const device& d) noexcept : device_(d) {}
  ~memory() override;
  memory(const memory&) = delete;
  memory& operator=(const memory&) = delete;

  bitnet_status allocate(uint64_t bytes, gpu::memory_place where, const sdk::reporter& report);

  uint64_t size() const noexcept override { return bytes_; }
  void* mapped() const noexcept override { return mapped_; }
  VkBuffer handle() const noexcept { return buffer_; }
  static VkBuffer of(const gpu::buffer& b) noexcept {
    return static_cast<const memory&>(b).handle();
  }

 private:
  // Tries the memory types that have `flags`; false if none has room.
  bool take(const VkMemoryRequirements& needs, VkMemoryPropertyFlags flags);

  const device& device_;
  uint64_t bytes_ = 0;
  VkBuffer buffer_ = VK_NULL_HANDLE;
  VkDeviceMemory memory_ = VK_NULL_HANDLE;
  void* mapped_ = nullptr;
};

}  // namespace bitnet::vulkan

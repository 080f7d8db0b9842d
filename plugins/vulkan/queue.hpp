#pragma once
// Timelines: a timeline semaphore, or fences if the device has no such semaphores.

#include <atomic>
#include <deque>
#include <mutex>

#include "device.hpp"

namespace bitnet::vulkan {

class timeline_queue final : public gpu::queue {
 public:
  explicit timeline_queue(const device& d) noexcept : device_(d) {}
  ~timeline_queue() override;
  timeline_queue(const timeline_queue&) = delete;
  timeline_queue& operator=(const timeline_queue&) = delete;

  bitnet_status start(const sdk::reporter& report);
  bitnet_status submit(gpu::recording& work, uint64_t value, const sdk::reporter& report) override;
  bitnet_status wait(uint64_t value, uint64_t timeout_ns, const sdk::reporter& report) override;
  bitnet_status poll(uint64_t& value, const sdk::reporter& report) override;

 private:
  const device& device_;
  VkSemaphore timeline_ = VK_NULL_HANDLE;
  std::atomic<uint64_t> submitted_{0};  // one thread submits while others wait
};

class fence_queue final : public gpu::queue {
 public:
  explicit fence_queue(const device& d) : device_(d) {}
  ~fence_queue() override;
  fence_queue(const fence_queue&) = delete;
  fence_queue& operator=(const fence_queue&) = delete;

  bitnet_status submit(gpu::recording& work, uint64_t value, const sdk::reporter& report) override;
  bitnet_status wait(uint64_t value, uint64_t timeout_ns, const sdk::reporter& report) override;
  bitnet_status poll(uint64_t& value, const sdk::reporter& report) override;

 private:
  struct pending {
    uint64_t value;
    VkFence fence;
  };
  // Removes finished submissions. The caller holds the lock.
  bitnet_status retire(const sdk::reporter& report);

  const device& device_;
  std::mutex lock_;
  std::deque<pending> pending_;  // ascending
  std::vector<VkFence> spare_;
  uint64_t done_ = 0;
};

}  // namespace bitnet::vulkan

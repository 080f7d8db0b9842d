#include "queue.hpp"

#include <algorithm>

#include "recording.hpp"

namespace bitnet::vulkan {
namespace {

using sdk::failed;

VkSubmitInfo submission(const VkCommandBuffer& commands) {
  VkSubmitInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  info.commandBufferCount = 1;
  info.pCommandBuffers = &commands;
  return info;
}

}  // namespace

timeline_queue::~timeline_queue() {
  if (!timeline_) return;
  sdk::guarded(nullptr, "queue_destroy", [&](const sdk::reporter& report) {
    return submitted_ == 0 ? BITNET_OK : wait(submitted_, UINT64_MAX, report);
  });
  device_.vk().vkDestroySemaphore(device_.handle(), timeline_, nullptr);
}

bitnet_status timeline_queue::start(const sdk::reporter& report) {
  VkSemaphoreTypeCreateInfo type{};
  type.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO;
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  VkSemaphoreCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO;
  info.pNext = &type;
  const bitnet_status s =
      check(device_.vk().vkCreateSemaphore(device_.handle(), &info, nullptr, &timeline_),
            "vkCreateSemaphore", report);
  if (failed(s)) timeline_ = VK_NULL_HANDLE;
  return s;
}

bitnet_status timeline_queue::submit(gpu::recording& work, uint64_t value,
                                     const sdk::reporter& report) {
  const VkCommandBuffer commands = static_cast<recording&>(work).handle();
  VkTimelineSemaphoreSubmitInfo signal{};
  signal.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO;
  signal.signalSemaphoreValueCount = 1;
  signal.pSignalSemaphoreValues = &value;
  VkSubmitInfo info = submission(commands);
  info.pNext = &signal;
  info.signalSemaphoreCount = 1;
  info.pSignalSemaphores = &timeline_;
  if (bitnet_status s = check(device_.submit(info, VK_NULL_HANDLE), "vkQueueSubmit", report);
      failed(s))
    return s;
  submitted_ = value;
  return BITNET_OK;
}

bitnet_status timeline_queue::wait(uint64_t value, uint64_t timeout_ns,
                                   const sdk::reporter& report) {
  VkSemaphoreWaitInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO;
  info.semaphoreCount = 1;
  info.pSemaphores = &timeline_;
  info.pValues = &value;
  const VkResult reached = device_.vk().vkWaitSemaphores(device_.handle(), &info, timeout_ns);
  if (reached != VK_TIMEOUT) return check(reached, "vkWaitSemaphores", report);
  uint64_t now = 0;
  if (bitnet_status s = poll(now, report); failed(s)) return s;
  return now >= value ? BITNET_OK : gpu::report_timeline(now, value, submitted_ >= value, report);
}

bitnet_status timeline_queue::poll(uint64_t& value, const sdk::reporter& report) {
  return check(device_.vk().vkGetSemaphoreCounterValue(device_.handle(), timeline_, &value),
               "vkGetSemaphoreCounterValue", report);
}

fence_queue::~fence_queue() {
  const device_functions& vk = device_.vk();
  for (const pending& p : pending_) {
    vk.vkWaitForFences(device_.handle(), 1, &p.fence, VK_TRUE, UINT64_MAX);
    vk.vkDestroyFence(device_.handle(), p.fence, nullptr);
  }
  for (VkFence f : spare_) vk.vkDestroyFence(device_.handle(), f, nullptr);
}

bitnet_status fence_queue::submit(gpu::recording& work, uint64_t value,
                                  const sdk::reporter& report) {
  const device_functions& vk = device_.vk();
  const std::scoped_lock guard(lock_);
  if (bitnet_status s = retire(report); failed(s)) return s;
  if (spare_.empty()) {
    VkFenceCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO;
    VkFence made = VK_NULL_HANDLE;
    if (bitnet_status s = check(vk.vkCreateFence(device_.handle(), &info, nullptr, &made),
                                "vkCreateFence", report);
        failed(s))
      return s;
    spare_.push_back(made);
  }
  const VkFence fence = spare_.back();
  const VkCommandBuffer commands = static_cast<recording&>(work).handle();
  pending_.push_back({value, fence});  // before submission, since it may throw
  if (bitnet_status s = check(device_.submit(submission(commands), fence), "vkQueueSubmit", report);
      failed(s)) {
    pending_.pop_back();
    return s;
  }
  spare_.pop_back();
  return BITNET_OK;
}

bitnet_status fence_queue::retire(const sdk::reporter& report) {
  const device_functions& vk = device_.vk();
  while (!pending_.empty()) {
    const pending& first = pending_.front();
    const VkResult done = vk.vkGetFenceStatus(device_.handle(), first.fence);
    if (done == VK_NOT_READY) return BITNET_OK;
    if (bitnet_status s = check(done, "vkGetFenceStatus", report); failed(s)) return s;
    if (bitnet_status s =
            check(vk.vkResetFences(device_.handle(), 1, &first.fence), "vkResetFences", report);
        failed(s))
      return s;
    done_ = first.value;
    spare_.push_back(first.fence);
    pending_.pop_front();
  }
  return BITNET_OK;
}

// poll() and wait() of other threads reset fences that are done. So this waits in slices and holds
// the lock in each, during which the fence cannot be reset.
bitnet_status fence_queue::wait(uint64_t value, uint64_t timeout_ns, const sdk::reporter& report) {
  constexpr uint64_t slice_ns = 1'000'000;  // 1 ms: a poll() waits for the lock no longer
  for (uint64_t left = timeout_ns;;) {
    const std::scoped_lock guard(lock_);
    if (bitnet_status s = retire(report); failed(s)) return s;
    if (done_ >= value) return BITNET_OK;
    const auto at = std::find_if(pending_.begin(), pending_.end(),
                                 [&](const pending& p) { return p.value >= value; });
    if (left == 0 || at == pending_.end())
      return gpu::report_timeline(done_, value, at != pending_.end(), report);
    const uint64_t slice = std::min(left, slice_ns);
    const VkResult done =
        device_.vk().vkWaitForFences(device_.handle(), 1, &at->fence, VK_TRUE, slice);
    if (done != VK_SUCCESS && done != VK_TIMEOUT) return check(done, "vkWaitForFences", report);
    if (timeout_ns != UINT64_MAX) left -= slice;
  }
}

bitnet_status fence_queue::poll(uint64_t& value, const sdk::reporter& report) {
  const std::scoped_lock guard(lock_);
  if (bitnet_status s = retire(report); failed(s)) return s;
  value = done_;
  return BITNET_OK;
}

}  // namespace bitnet::vulkan

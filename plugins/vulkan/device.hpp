#pragma once
// One Vulkan device: memory, pipelines, recorded command buffers, queues.

#include <mutex>

#include "gpu-common/driver.hpp"
#include "library.hpp"
#include "platform.hpp"

namespace bitnet::vulkan {

class device final : public gpu::device {
 public:
  device(const instance_functions& instance, const physical& mine, const gpu::facts& about) noexcept
      : instance_(instance), mine_(mine), facts_(about) {}
  ~device() override;
  device(const device&) = delete;
  device& operator=(const device&) = delete;

  bitnet_status start(const sdk::reporter& report);

  const gpu::facts& describe() const noexcept override { return facts_; }
  bitnet_status status(bitnet_device_status& out, const sdk::reporter& report) const override;
  bitnet_status allocate(uint64_t bytes, gpu::memory_place where, std::unique_ptr<gpu::buffer>& out,
                         const sdk::reporter& report) override;
  bitnet_status upload(gpu::buffer& to, uint64_t offset, const void* data, uint64_t bytes,
                       const sdk::reporter& report) override;
  bitnet_status download(const gpu::buffer& from, uint64_t offset, void* data, uint64_t bytes,
                         const sdk::reporter& report) override;
  bitnet_status make_kernel(const gpu::kernel_spec& spec, std::unique_ptr<gpu::kernel>& out,
                            const sdk::reporter& report) override;
  bitnet_status record(std::span<const gpu::command> commands, bool timed,
                       std::unique_ptr<gpu::recording>& out, const sdk::reporter& report) override;
  bitnet_status make_queue(std::unique_ptr<gpu::queue>& out, const sdk::reporter& report) override;

  const device_functions& vk() const noexcept { return vk_; }
  VkDevice handle() const noexcept { return device_; }
  const physical& about() const noexcept { return mine_; }
  // Submits to the device's only queue. The caller holds the device's lock.
  VkResult submit(const VkSubmitInfo& work, VkFence fence) const {
    return vk_.vkQueueSubmit(queue_, 1, &work, fence);
  }

 private:
  // Complete when it returns.
  bitnet_status copy(const gpu::buffer& from, gpu::buffer& to,
                     std::span<const gpu::copy_range> ranges, const sdk::reporter& report);
  // Records commands with record(VkCommandBuffer), runs them and waits.
  template <class Record>
  bitnet_status run_now(Record&& commands, const sdk::reporter& report);

  const instance_functions& instance_;
  const physical mine_;
  const gpu::facts facts_;
  device_functions vk_;
  VkDevice device_ = VK_NULL_HANDLE;
  VkQueue queue_ = VK_NULL_HANDLE;
  VkCommandPool pool_ = VK_NULL_HANDLE;  // for transfers
  VkCommandBuffer transfer_ = VK_NULL_HANDLE;
  VkFence transferred_ = VK_NULL_HANDLE;
  std::unique_ptr<gpu::buffer> staging_;
};

}  // namespace bitnet::vulkan

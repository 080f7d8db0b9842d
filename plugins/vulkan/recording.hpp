#pragma once
// Compiled kernels, and command buffers that run them or copy.

#include "device.hpp"

namespace bitnet::vulkan {

class pipeline final : public gpu::kernel {
 public:
  explicit pipeline(const device& d) noexcept : device_(d) {}
  ~pipeline() override;
  pipeline(const pipeline&) = delete;
  pipeline& operator=(const pipeline&) = delete;

  bitnet_status compile(const gpu::kernel_spec& spec, const sdk::reporter& report);

  VkPipeline handle() const noexcept { return pipeline_; }
  VkPipelineLayout layout() const noexcept { return layout_; }
  VkDescriptorSetLayout set_layout() const noexcept { return set_layout_; }

 private:
  bitnet_status make_layouts(gpu::kernel_id id, const sdk::reporter& report);
  VkResult make(const gpu::kernel_spec& spec, bool subgroups, VkShaderModule shader);

  const device& device_;
  VkDescriptorSetLayout set_layout_ = VK_NULL_HANDLE;
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  VkPipeline pipeline_ = VK_NULL_HANDLE;
};

class recording final : public gpu::recording {
 public:
  explicit recording(const device& d) noexcept : device_(d) {}
  ~recording() override;
  recording(const recording&) = delete;
  recording& operator=(const recording&) = delete;

  bitnet_status record(std::span<const gpu::command> commands, bool timed,
                       const sdk::reporter& report);
  bool times(std::span<uint64_t> out) const noexcept override;

  VkCommandBuffer handle() const noexcept { return commands_; }

 private:
  bitnet_status make_pools(std::span<const gpu::command> commands, bool timed,
                           const sdk::reporter& report);
  bitnet_status add(const gpu::command& c, const sdk::reporter& report);

  const device& device_;
  VkDescriptorPool sets_ = VK_NULL_HANDLE;  // none if there are only copies
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;
  VkQueryPool queries_ = VK_NULL_HANDLE;  // two for each command, or none
  uint32_t count_ = 0;
};

}  // namespace bitnet::vulkan

#include "device.hpp"

#include <algorithm>
#include <cstring>

#include "memory.hpp"
#include "queue.hpp"
#include "recording.hpp"
#include "shaders.hpp"

namespace bitnet::vulkan {
namespace {

using sdk::failed;

constexpr uint64_t staging_bytes = uint64_t{8} << 20;

void barrier(const device_functions& vk, VkCommandBuffer to, VkPipelineStageFlags from_stage,
             VkAccessFlags from, VkPipelineStageFlags to_stage, VkAccessFlags access) {
  VkMemoryBarrier all{};
  all.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  all.srcAccessMask = from;
  all.dstAccessMask = access;
  vk.vkCmdPipelineBarrier(to, from_stage, to_stage, 0, 1, &all, 0, nullptr, 0, nullptr);
}

}  // namespace

device::~device() {
  if (!device_) return;
  vk_.vkDeviceWaitIdle(device_);
  staging_.reset();
  vk_.vkDestroyFence(device_, transferred_, nullptr);
  vk_.vkDestroyCommandPool(device_, pool_, nullptr);
  vk_.vkDestroyDevice(device_, nullptr);
}

bitnet_status device::start(const sdk::reporter& report) {
  const float priority = 1;
  VkDeviceQueueCreateInfo queue{};
  queue.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
  queue.queueFamilyIndex = mine_.queue_family;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  VkPhysicalDeviceTimelineSemaphoreFeatures timeline{};
  timeline.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES;
  timeline.timelineSemaphore = VK_TRUE;
  std::vector<const char*> extensions;
  VkDeviceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  if (mine_.timeline) {
    info.pNext = &timeline;
    if (mine_.timeline_extension) extensions.push_back(VK_KHR_TIMELINE_SEMAPHORE_EXTENSION_NAME);
  }
  const forms_request asked(mine_.kernels, info, extensions);
  info.enabledExtensionCount = static_cast<uint32_t>(extensions.size());
  info.ppEnabledExtensionNames = extensions.data();
  if (bitnet_status s = check(instance_.vkCreateDevice(mine_.handle, &info, nullptr, &device_),
                              "vkCreateDevice", report);
      failed(s)) {
    device_ = VK_NULL_HANDLE;
    return s;
  }
  if (bitnet_status s = load(instance_, device_, vk_, report); failed(s)) {
    if (vk_.vkDestroyDevice) vk_.vkDestroyDevice(device_, nullptr);
    device_ = VK_NULL_HANDLE;
    return s;
  }
  keep_loaded(vk_);
  vk_.vkGetDeviceQueue(device_, mine_.queue_family, 0, &queue_);
  VkCommandPoolCreateInfo pool{};
  pool.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  pool.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
  pool.queueFamilyIndex = mine_.queue_family;
  if (bitnet_status s = check(vk_.vkCreateCommandPool(device_, &pool, nullptr, &pool_),
                              "vkCreateCommandPool", report);
      failed(s))
    return s;
  VkCommandBufferAllocateInfo one{};
  one.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
  one.commandPool = pool_;
  one.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  one.commandBufferCount = 1;
  if (bitnet_status s = check(vk_.vkAllocateCommandBuffers(device_, &one, &transfer_),
                              "vkAllocateCommandBuffers", report);
      failed(s))
    return s;
  VkFenceCreateInfo fence{};
  fence.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO;
  if (bitnet_status s = check(vk_.vkCreateFence(device_, &fence, nullptr, &transferred_),
                              "vkCreateFence", report);
      failed(s))
    return s;
  return allocate(staging_bytes, gpu::memory_place::host, staging_, report);
}

bitnet_status device::status(bitnet_device_status& out, const sdk::reporter&) const {
  add_memory(instance_, mine_, out);
  return BITNET_OK;
}

bitnet_status device::allocate(uint64_t bytes, gpu::memory_place where,
                               std::unique_ptr<gpu::buffer>& out, const sdk::reporter& report) {
  auto made = std::make_unique<memory>(*this);
  if (bitnet_status s = made->allocate((bytes + 3) / 4 * 4, where, report); failed(s)) return s;
  if (made->mapped()) {
    std::memset(made->mapped(), 0, made->size());
  } else {
    const bitnet_status s = run_now(
        [&](VkCommandBuffer to) { vk_.vkCmdFillBuffer(to, made->handle(), 0, VK_WHOLE_SIZE, 0); },
        report);
    if (failed(s)) return s;
  }
  out = std::move(made);
  return BITNET_OK;
}

template <class Record>
bitnet_status device::run_now(Record&& commands, const sdk::reporter& report) {
  VkCommandBufferBeginInfo begin{};
  begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  if (bitnet_status s =
          check(vk_.vkBeginCommandBuffer(transfer_, &begin), "vkBeginCommandBuffer", report);
      failed(s))
    return s;
  constexpr VkPipelineStageFlags work =
      VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
  barrier(vk_, transfer_, work, VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
          VK_PIPELINE_STAGE_TRANSFER_BIT,
          VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT);
  commands(transfer_);
  barrier(vk_, transfer_, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT,
          VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
  if (bitnet_status s = check(vk_.vkEndCommandBuffer(transfer_), "vkEndCommandBuffer", report);
      failed(s))
    return s;
  VkSubmitInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  info.commandBufferCount = 1;
  info.pCommandBuffers = &transfer_;
  if (bitnet_status s = check(submit(info, transferred_), "vkQueueSubmit", report); failed(s))
    return s;
  if (bitnet_status s = check(vk_.vkWaitForFences(device_, 1, &transferred_, VK_TRUE, UINT64_MAX),
                              "vkWaitForFences", report);
      failed(s))
    return s;
  return check(vk_.vkResetFences(device_, 1, &transferred_), "vkResetFences", report);
}

bitnet_status device::upload(gpu::buffer& to, uint64_t offset, const void* data, uint64_t bytes,
                             const sdk::reporter& report) {
  const auto* from = static_cast<const uint8_t*>(data);
  for (uint64_t done = 0; done < bytes;) {
    const uint64_t n = std::min(staging_bytes, bytes - done);
    std::memcpy(staging_->mapped(), from + done, n);
    const gpu::copy_range range{0, offset + done, n};
    if (bitnet_status s = copy(*staging_, to, {&range, 1}, report); failed(s)) return s;
    done += n;
  }
  return BITNET_OK;
}

bitnet_status device::download(const gpu::buffer& from, uint64_t offset, void* data, uint64_t bytes,
                               const sdk::reporter& report) {
  for (uint64_t done = 0; done < bytes;) {
    const uint64_t n = std::min(staging_bytes, bytes - done);
    const gpu::copy_range range{offset + done, 0, n};
    if (bitnet_status s = copy(from, *staging_, {&range, 1}, report); failed(s)) return s;
    std::memcpy(static_cast<uint8_t*>(data) + done, staging_->mapped(), n);
    done += n;
  }
  return BITNET_OK;
}

bitnet_status device::copy(const gpu::buffer& from, gpu::buffer& to,
                           std::span<const gpu::copy_range> ranges, const sdk::reporter& report) {
  std::vector<VkBufferCopy> regions;
  regions.reserve(ranges.size());
  for (const gpu::copy_range& r : ranges) regions.push_back({r.from, r.to, r.bytes});
  return run_now(
      [&](VkCommandBuffer commands) {
        vk_.vkCmdCopyBuffer(commands, memory::of(from), memory::of(to),
                            static_cast<uint32_t>(regions.size()), regions.data());
      },
      report);
}

bitnet_status device::make_kernel(const gpu::kernel_spec& spec, std::unique_ptr<gpu::kernel>& out,
                                  const sdk::reporter& report) {
  auto made = std::make_unique<pipeline>(*this);
  if (bitnet_status s = made->compile(spec, report); failed(s)) return s;
  out = std::move(made);
  return BITNET_OK;
}

bitnet_status device::record(std::span<const gpu::command> commands, bool timed,
                             std::unique_ptr<gpu::recording>& out, const sdk::reporter& report) {
  auto made = std::make_unique<recording>(*this);
  if (bitnet_status s = made->record(commands, timed, report); failed(s)) return s;
  out = std::move(made);
  return BITNET_OK;
}

bitnet_status device::make_queue(std::unique_ptr<gpu::queue>& out, const sdk::reporter& report) {
  if (!mine_.timeline) {
    out = std::make_unique<fence_queue>(*this);
    return BITNET_OK;
  }
  auto made = std::make_unique<timeline_queue>(*this);
  if (bitnet_status s = made->start(report); failed(s)) return s;
  out = std::move(made);
  return BITNET_OK;
}

}  // namespace bitnet::vulkan

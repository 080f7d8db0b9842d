#include "recording.hpp"

#include <algorithm>
#include <iterator>

#include "memory.hpp"
#include "shaders.hpp"

namespace bitnet::vulkan {

using sdk::failed;

pipeline::~pipeline() {
  const device_functions& vk = device_.vk();
  vk.vkDestroyPipeline(device_.handle(), pipeline_, nullptr);
  vk.vkDestroyPipelineLayout(device_.handle(), layout_, nullptr);
  vk.vkDestroyDescriptorSetLayout(device_.handle(), set_layout_, nullptr);
}

bitnet_status pipeline::compile(const gpu::kernel_spec& spec, const sdk::reporter& report) {
  if (bitnet_status s = make_layouts(spec.id, report); failed(s)) return s;
  const forms& can = device_.about().kernels;
  const bitnet::vulkan::shader* const form = shader_of(spec.id, can);
  if (!form) return report.fail(BITNET_INTERNAL, "no kernel %s", gpu::kernel_label(spec.id));
  const device_functions& vk = device_.vk();
  VkShaderModuleCreateInfo module{};
  module.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
  module.codeSize = form->code.size_bytes();
  module.pCode = form->code.data();
  VkShaderModule shader = VK_NULL_HANDLE;
  if (bitnet_status s = check(vk.vkCreateShaderModule(device_.handle(), &module, nullptr, &shader),
                              "vkCreateShaderModule", report);
      failed(s))
    return s;
  const VkResult made = make(spec, form->subgroups, shader);
  vk.vkDestroyShaderModule(device_.handle(), shader, nullptr);
  return check(made, "vkCreateComputePipelines", report);
}

bitnet_status pipeline::make_layouts(gpu::kernel_id id, const sdk::reporter& report) {
  const device_functions& vk = device_.vk();
  VkDescriptorSetLayoutBinding bindings[gpu::max_kernel_bindings] = {};
  const uint32_t n = gpu::bindings_of(id);
  for (uint32_t i = 0; i < n; ++i) {
    bindings[i].binding = i;
    bindings[i].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    bindings[i].descriptorCount = 1;
    bindings[i].stageFlags = VK_SHADER_STAGE_COMPUTE_BIT;
  }
  VkDescriptorSetLayoutCreateInfo set{};
  set.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO;
  set.bindingCount = n;
  set.pBindings = bindings;
  if (bitnet_status s =
          check(vk.vkCreateDescriptorSetLayout(device_.handle(), &set, nullptr, &set_layout_),
                "vkCreateDescriptorSetLayout", report);
      failed(s))
    return s;
  const VkPushConstantRange params{VK_SHADER_STAGE_COMPUTE_BIT, 0, 4 * gpu::max_params};
  VkPipelineLayoutCreateInfo layout{};
  layout.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
  layout.setLayoutCount = 1;
  layout.pSetLayouts = &set_layout_;
  layout.pushConstantRangeCount = 1;
  layout.pPushConstantRanges = &params;
  return check(vk.vkCreatePipelineLayout(device_.handle(), &layout, nullptr, &layout_),
               "vkCreatePipelineLayout", report);
}

VkResult pipeline::make(const gpu::kernel_spec& spec, bool subgroups, VkShaderModule shader) {
  const forms& can = device_.about().kernels;
  const VkSpecializationMapEntry entries[] = {{0, 0, 4},  {1, 4, 4},  {2, 8, 4},
                                              {3, 12, 4}, {4, 16, 4}, {5, 20, 4}};
  uint32_t values[6] = {};
  std::copy(std::begin(spec.constants), std::end(spec.constants), values);
  values[5] = can.subgroup;
  VkSpecializationInfo constants{};
  constants.mapEntryCount = subgroups ? 6 : 5;
  constants.pMapEntries = entries;
  constants.dataSize = sizeof values;
  constants.pData = values;
  VkPipelineShaderStageRequiredSubgroupSizeCreateInfo size{};
  size.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO;
  size.requiredSubgroupSize = can.subgroup;
  VkComputePipelineCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = shader;
  info.stage.pName = "main";
  info.stage.pSpecializationInfo = &constants;
  if (subgroups) {
    info.stage.flags = VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT;
    if (!can.fixed_size) info.stage.pNext = &size;
  }
  info.layout = layout_;
  return device_.vk().vkCreateComputePipelines(device_.handle(), VK_NULL_HANDLE, 1, &info, nullptr,
                                               &pipeline_);
}

recording::~recording() {
  const device_functions& vk = device_.vk();
  vk.vkDestroyQueryPool(device_.handle(), queries_, nullptr);
  vk.vkDestroyCommandPool(device_.handle(), pool_, nullptr);
  vk.vkDestroyDescriptorPool(device_.handle(), sets_, nullptr);
}

bitnet_status recording::make_pools(std::span<const gpu::command> commands, bool timed,
                                    const sdk::reporter& report) {
  const device_functions& vk = device_.vk();
  count_ = static_cast<uint32_t>(commands.size());
  VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 0};
  VkDescriptorPoolCreateInfo sets{};
  sets.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO;
  sets.poolSizeCount = 1;
  sets.pPoolSizes = &size;
  for (const gpu::command& c : commands) {
    if (!c.run) continue;
    size.descriptorCount += static_cast<uint32_t>(c.bindings.size());
    ++sets.maxSets;
  }
  if (sets.maxSets != 0)
    if (bitnet_status s = check(vk.vkCreateDescriptorPool(device_.handle(), &sets, nullptr, &sets_),
                                "vkCreateDescriptorPool", report);
        failed(s))
      return s;
  VkCommandPoolCreateInfo pool{};
  pool.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  pool.queueFamilyIndex = device_.about().queue_family;
  if (bitnet_status s = check(vk.vkCreateCommandPool(device_.handle(), &pool, nullptr, &pool_),
                              "vkCreateCommandPool", report);
      failed(s))
    return s;
  VkCommandBufferAllocateInfo one{};
  one.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
  one.commandPool = pool_;
  one.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  one.commandBufferCount = 1;
  if (bitnet_status s = check(vk.vkAllocateCommandBuffers(device_.handle(), &one, &commands_),
                              "vkAllocateCommandBuffers", report);
      failed(s))
    return s;
  if (!timed || device_.about().timestamp_bits == 0) return BITNET_OK;
  VkQueryPoolCreateInfo queries{};
  queries.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO;
  queries.queryType = VK_QUERY_TYPE_TIMESTAMP;
  queries.queryCount = 2 * count_;
  return check(vk.vkCreateQueryPool(device_.handle(), &queries, nullptr, &queries_),
               "vkCreateQueryPool", report);
}

bitnet_status recording::add(const gpu::command& c, const sdk::reporter& report) {
  const device_functions& vk = device_.vk();
  if (!c.run) {
    std::vector<VkBufferCopy> regions;
    regions.reserve(c.copies.size());
    for (const gpu::copy_range& r : c.copies) regions.push_back({r.from, r.to, r.bytes});
    if (!regions.empty())
      vk.vkCmdCopyBuffer(commands_, memory::of(*c.bindings[0].memory),
                         memory::of(*c.bindings[1].memory), static_cast<uint32_t>(regions.size()),
                         regions.data());
    return BITNET_OK;
  }
  const auto& kernel = static_cast<const pipeline&>(*c.run);
  const VkDescriptorSetLayout layout = kernel.set_layout();
  VkDescriptorSetAllocateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO;
  info.descriptorPool = sets_;
  info.descriptorSetCount = 1;
  info.pSetLayouts = &layout;
  VkDescriptorSet set = VK_NULL_HANDLE;
  if (bitnet_status s = check(vk.vkAllocateDescriptorSets(device_.handle(), &info, &set),
                              "vkAllocateDescriptorSets", report);
      failed(s))
    return s;
  VkDescriptorBufferInfo places[gpu::max_kernel_bindings] = {};
  VkWriteDescriptorSet writes[gpu::max_kernel_bindings] = {};
  const auto n = static_cast<uint32_t>(c.bindings.size());
  for (uint32_t i = 0; i < n; ++i) {
    const gpu::binding& b = c.bindings[i];
    places[i] = {memory::of(*b.memory), b.offset, b.bytes};
    writes[i].sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET;
    writes[i].dstSet = set;
    writes[i].dstBinding = i;
    writes[i].descriptorCount = 1;
    writes[i].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    writes[i].pBufferInfo = &places[i];
  }
  vk.vkUpdateDescriptorSets(device_.handle(), n, writes, 0, nullptr);
  vk.vkCmdBindPipeline(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, kernel.handle());
  vk.vkCmdBindDescriptorSets(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, kernel.layout(), 0, 1, &set,
                             0, nullptr);
  vk.vkCmdPushConstants(commands_, kernel.layout(), VK_SHADER_STAGE_COMPUTE_BIT, 0,
                        static_cast<uint32_t>(4 * c.params.size()), c.params.data());
  vk.vkCmdDispatch(commands_, c.groups_x, c.groups_y, 1);
  return BITNET_OK;
}

bitnet_status recording::record(std::span<const gpu::command> commands, bool timed,
                                const sdk::reporter& report) {
  const device_functions& vk = device_.vk();
  if (bitnet_status s = make_pools(commands, timed, report); failed(s)) return s;
  VkCommandBufferBeginInfo begin{};
  begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  if (bitnet_status s =
          check(vk.vkBeginCommandBuffer(commands_, &begin), "vkBeginCommandBuffer", report);
      failed(s))
    return s;
  if (queries_) vk.vkCmdResetQueryPool(commands_, queries_, 0, 2 * count_);
  const auto wait = [&](VkPipelineStageFlags from, VkAccessFlags written, VkPipelineStageFlags to,
                        VkAccessFlags used) {
    VkMemoryBarrier all{};
    all.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
    all.srcAccessMask = written;
    all.dstAccessMask = used;
    vk.vkCmdPipelineBarrier(commands_, from, to, 0, 1, &all, 0, nullptr, 0, nullptr);
  };
  // Pipeline stages of this recording, and of earlier ones: kernels, or copies of KV blocks.
  const bool copies = std::ranges::any_of(commands, [](const gpu::command& c) { return !c.run; });
  constexpr VkPipelineStageFlags kernels = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;
  constexpr VkPipelineStageFlags either = kernels | VK_PIPELINE_STAGE_TRANSFER_BIT;
  constexpr VkAccessFlags written = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
  const VkPipelineStageFlags stages = copies ? either : kernels;
  const VkAccessFlags both =
      VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT |
      (copies ? VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT : VkAccessFlags{0});
  wait(either, written, stages, both);
  for (uint32_t i = 0; i < count_; ++i) {
    // Only commands that run alone can be timed.
    if (i != 0 && (commands[i].after || queries_)) wait(stages, both & written, stages, both);
    if (queries_)
      vk.vkCmdWriteTimestamp(commands_, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, queries_, 2 * i);
    if (bitnet_status s = add(commands[i], report); failed(s)) return s;
    if (queries_)
      vk.vkCmdWriteTimestamp(commands_, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, queries_, 2 * i + 1);
  }
  wait(stages, both & written, VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
  return check(vk.vkEndCommandBuffer(commands_), "vkEndCommandBuffer", report);
}

bool recording::times(std::span<uint64_t> out) const noexcept {
  if (!queries_ || out.size() != count_) return false;
  const uint32_t bits = device_.about().timestamp_bits;
  const uint64_t mask = bits >= 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  for (uint32_t i = 0; i < count_; ++i) {
    uint64_t ticks[2] = {};
    if (device_.vk().vkGetQueryPoolResults(device_.handle(), queries_, 2 * i, 2, sizeof ticks,
                                           ticks, sizeof *ticks,
                                           VK_QUERY_RESULT_64_BIT) != VK_SUCCESS)
      return false;
    out[i] = static_cast<uint64_t>(static_cast<double>((ticks[1] - ticks[0]) & mask) *
                                   double{device_.about().timestamp_ns});
  }
  return true;
}

}  // namespace bitnet::vulkan

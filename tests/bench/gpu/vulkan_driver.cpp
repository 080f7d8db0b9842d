#include <vulkan/vulkan.h>

#include <chrono>
#include <map>
#include <tuple>

#include "driver.hpp"

namespace bitnet::ceilings {

const char* const api = "vulkan";

namespace {

constexpr uint32_t code[] = {
#include "vulkan.spv.inc"
};

void check(VkResult result, const char* call) {
  if (result != VK_SUCCESS)
    throw std::runtime_error(std::string(call) + " fails with " + std::to_string(result));
}

// A struct of Vulkan with its type set and the rest 0.
template <class T>
T zeroed(VkStructureType type) {
  T out{};
  out.sType = type;
  return out;
}

struct memory {
  VkBuffer buffer = VK_NULL_HANDLE;
  VkDeviceMemory room = VK_NULL_HANDLE;
};

class vulkan_driver final : public driver {
 public:
  explicit vulkan_driver(uint32_t index) {
    try {
      start(index);
    } catch (...) {
      end();
      throw;
    }
  }
  ~vulkan_driver() override { end(); }
  vulkan_driver(const vulkan_driver&) = delete;
  vulkan_driver& operator=(const vulkan_driver&) = delete;

  std::string device() const override { return about_.properties.deviceName; }
  std::string software() const override {
    return std::string(driver_.driverName) + ", " + driver_.driverInfo;
  }
  uint64_t most_bytes() const override { return about_.properties.limits.maxStorageBufferRange; }
  uint32_t most_threads() const override {
    return about_.properties.limits.maxComputeWorkGroupInvocations;
  }

  void allocate(uint32_t count, uint64_t bytes) override {
    for (uint32_t i = 0; i < count; ++i)
      buffers_.push_back(make_memory(bytes, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT));
    bytes_ = bytes;
    make_sets();
  }

  double seconds(std::span<const dispatch> list) override {
    begin();
    for (const dispatch& d : list) {
      record(d);
      auto all = zeroed<VkMemoryBarrier>(VK_STRUCTURE_TYPE_MEMORY_BARRIER);
      all.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
      all.dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT |
                          VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
      constexpr VkPipelineStageFlags stages =
          VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
      vkCmdPipelineBarrier(commands_, stages, stages, 0, 1, &all, 0, nullptr, 0, nullptr);
    }
    return submit();
  }

  std::vector<uint32_t> words(uint32_t buffer, uint32_t count) override {
    const uint64_t bytes = sizeof(uint32_t) * count;
    const memory seen = make_memory(
        bytes, VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT);
    begin();
    const VkBufferCopy range{0, 0, bytes};
    vkCmdCopyBuffer(commands_, buffers_[buffer].buffer, seen.buffer, 1, &range);
    auto to_host = zeroed<VkMemoryBarrier>(VK_STRUCTURE_TYPE_MEMORY_BARRIER);
    to_host.srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
    to_host.dstAccessMask = VK_ACCESS_HOST_READ_BIT;
    vkCmdPipelineBarrier(commands_, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0,
                         1, &to_host, 0, nullptr, 0, nullptr);
    submit();
    void* from = nullptr;
    check(vkMapMemory(device_, seen.room, 0, bytes, 0, &from), "vkMapMemory");
    const auto* first = static_cast<const uint32_t*>(from);
    std::vector<uint32_t> out(first, first + count);
    release(seen);
    return out;
  }

 private:
  using pipeline_key = std::tuple<kernel, uint32_t, uint32_t>;  // of this way and group

  void start(uint32_t index) {
    auto application = zeroed<VkApplicationInfo>(VK_STRUCTURE_TYPE_APPLICATION_INFO);
    application.apiVersion = VK_API_VERSION_1_2;
    auto instance = zeroed<VkInstanceCreateInfo>(VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO);
    instance.pApplicationInfo = &application;
    if (vkCreateInstance(&instance, nullptr, &instance_) != VK_SUCCESS)
      throw unavailable("no Vulkan driver can be used; install one such as mesa-vulkan-drivers");
    choose(index);
    const float priority = 1;
    auto queue = zeroed<VkDeviceQueueCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO);
    queue.queueFamilyIndex = family_;
    queue.queueCount = 1;
    queue.pQueuePriorities = &priority;
    auto device = zeroed<VkDeviceCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO);
    device.queueCreateInfoCount = 1;
    device.pQueueCreateInfos = &queue;
    check(vkCreateDevice(physical_, &device, nullptr, &device_), "vkCreateDevice");
    vkGetDeviceQueue(device_, family_, 0, &queue_);

    auto pool = zeroed<VkCommandPoolCreateInfo>(VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO);
    pool.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
    pool.queueFamilyIndex = family_;
    check(vkCreateCommandPool(device_, &pool, nullptr, &pool_), "vkCreateCommandPool");
    auto commands =
        zeroed<VkCommandBufferAllocateInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO);
    commands.commandPool = pool_;
    commands.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
    commands.commandBufferCount = 1;
    check(vkAllocateCommandBuffers(device_, &commands, &commands_), "vkAllocateCommandBuffers");
    const auto fence = zeroed<VkFenceCreateInfo>(VK_STRUCTURE_TYPE_FENCE_CREATE_INFO);
    check(vkCreateFence(device_, &fence, nullptr, &done_), "vkCreateFence");
    make_layout();
  }

  void choose(uint32_t index) {
    uint32_t n = 0;
    check(vkEnumeratePhysicalDevices(instance_, &n, nullptr), "vkEnumeratePhysicalDevices");
    std::vector<VkPhysicalDevice> all(n);
    check(vkEnumeratePhysicalDevices(instance_, &n, all.data()), "vkEnumeratePhysicalDevices");
    if (index >= n)
      throw unavailable("Vulkan has " + std::to_string(n) +
                        " devices; install a driver such as mesa-vulkan-drivers, or choose with "
                        "--device");
    physical_ = all[index];
    about_.pNext = &driver_;
    vkGetPhysicalDeviceProperties2(physical_, &about_);
    vkGetPhysicalDeviceMemoryProperties(physical_, &rooms_);
    vkGetPhysicalDeviceQueueFamilyProperties(physical_, &n, nullptr);
    std::vector<VkQueueFamilyProperties> families(n);
    vkGetPhysicalDeviceQueueFamilyProperties(physical_, &n, families.data());
    while (family_ < n && !(families[family_].queueFlags & VK_QUEUE_COMPUTE_BIT)) ++family_;
    if (family_ == n) throw unavailable(device() + " has no queue that computes");
  }

  void make_layout() {
    VkDescriptorSetLayoutBinding bindings[2]{};
    for (uint32_t i = 0; i < 2; ++i)
      bindings[i] = {i, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr};
    auto set = zeroed<VkDescriptorSetLayoutCreateInfo>(
        VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO);
    set.bindingCount = 2;
    set.pBindings = bindings;
    check(vkCreateDescriptorSetLayout(device_, &set, nullptr, &set_layout_),
          "vkCreateDescriptorSetLayout");
    const VkPushConstantRange params{VK_SHADER_STAGE_COMPUTE_BIT, 0, 2 * sizeof(uint32_t)};
    auto layout = zeroed<VkPipelineLayoutCreateInfo>(VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO);
    layout.setLayoutCount = 1;
    layout.pSetLayouts = &set_layout_;
    layout.pushConstantRangeCount = 1;
    layout.pPushConstantRanges = &params;
    check(vkCreatePipelineLayout(device_, &layout, nullptr, &layout_), "vkCreatePipelineLayout");
    auto shader = zeroed<VkShaderModuleCreateInfo>(VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO);
    shader.codeSize = sizeof code;
    shader.pCode = code;
    check(vkCreateShaderModule(device_, &shader, nullptr, &shader_), "vkCreateShaderModule");
  }

  // One for each pair of buffers.
  void make_sets() {
    const auto n = static_cast<uint32_t>(buffers_.size());
    const VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 2 * n * n};
    auto pool = zeroed<VkDescriptorPoolCreateInfo>(VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO);
    pool.maxSets = n * n;
    pool.poolSizeCount = 1;
    pool.pPoolSizes = &size;
    check(vkCreateDescriptorPool(device_, &pool, nullptr, &descriptors_), "vkCreateDescriptorPool");
    const std::vector<VkDescriptorSetLayout> layouts(uint64_t{n} * n, set_layout_);
    auto sets = zeroed<VkDescriptorSetAllocateInfo>(VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO);
    sets.descriptorPool = descriptors_;
    sets.descriptorSetCount = n * n;
    sets.pSetLayouts = layouts.data();
    sets_.resize(uint64_t{n} * n);
    check(vkAllocateDescriptorSets(device_, &sets, sets_.data()), "vkAllocateDescriptorSets");
    for (uint32_t from = 0; from < n; ++from)
      for (uint32_t to = 0; to < n; ++to) {
        const VkDescriptorBufferInfo both[] = {{buffers_[from].buffer, 0, bytes_},
                                               {buffers_[to].buffer, 0, bytes_}};
        auto write = zeroed<VkWriteDescriptorSet>(VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET);
        write.dstSet = sets_[from * n + to];
        write.descriptorCount = 2;
        write.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
        write.pBufferInfo = both;
        vkUpdateDescriptorSets(device_, 1, &write, 0, nullptr);
      }
  }

  memory make_memory(uint64_t bytes, VkMemoryPropertyFlags kind) {
    memory out;
    auto buffer = zeroed<VkBufferCreateInfo>(VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO);
    buffer.size = bytes;
    buffer.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                   VK_BUFFER_USAGE_TRANSFER_DST_BIT;
    check(vkCreateBuffer(device_, &buffer, nullptr, &out.buffer), "vkCreateBuffer");
    VkMemoryRequirements needs{};
    vkGetBufferMemoryRequirements(device_, out.buffer, &needs);
    uint32_t type = 0;
    while (type < rooms_.memoryTypeCount &&
           ((needs.memoryTypeBits >> type & 1u) == 0 ||
            (rooms_.memoryTypes[type].propertyFlags & kind) != kind))
      ++type;
    if (type == rooms_.memoryTypeCount) throw std::runtime_error("no memory of the kind needed");
    auto room = zeroed<VkMemoryAllocateInfo>(VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO);
    room.allocationSize = needs.size;
    room.memoryTypeIndex = type;
    check(vkAllocateMemory(device_, &room, nullptr, &out.room), "vkAllocateMemory");
    check(vkBindBufferMemory(device_, out.buffer, out.room, 0), "vkBindBufferMemory");
    return out;
  }

  void release(const memory& m) const {
    vkDestroyBuffer(device_, m.buffer, nullptr);
    vkFreeMemory(device_, m.room, nullptr);
  }

  VkPipeline pipeline(const dispatch& d) {
    VkPipeline& out = pipelines_[{d.run, d.in.way, d.in.group}];
    if (out != VK_NULL_HANDLE) return out;
    const uint32_t constants[] = {d.in.group, static_cast<uint32_t>(d.run), d.in.way};
    const VkSpecializationMapEntry entries[] = {{0, 0, 4}, {1, 4, 4}, {2, 8, 4}};
    const VkSpecializationInfo special{3, entries, sizeof constants, constants};
    auto make = zeroed<VkComputePipelineCreateInfo>(VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO);
    make.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
    make.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
    make.stage.module = shader_;
    make.stage.pName = "main";
    make.stage.pSpecializationInfo = &special;
    make.layout = layout_;
    check(vkCreateComputePipelines(device_, VK_NULL_HANDLE, 1, &make, nullptr, &out),
          "vkCreateComputePipelines");
    return out;
  }

  void begin() {
    auto once = zeroed<VkCommandBufferBeginInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO);
    once.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
    check(vkBeginCommandBuffer(commands_, &once), "vkBeginCommandBuffer");
  }

  void record(const dispatch& d) {
    if (d.run == kernel::copy_command) {
      const VkBufferCopy range{0, 0, uint64_t{16} * d.n};
      vkCmdCopyBuffer(commands_, buffers_[d.from].buffer, buffers_[d.to].buffer, 1, &range);
      return;
    }
    vkCmdBindPipeline(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline(d));
    vkCmdBindDescriptorSets(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, layout_, 0, 1,
                            &sets_[d.from * buffers_.size() + d.to], 0, nullptr);
    const uint32_t params[] = {d.n, d.repeats};
    vkCmdPushConstants(commands_, layout_, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof params, params);
    vkCmdDispatch(commands_, d.in.groups, 1, 1);
  }

  double submit() {
    check(vkEndCommandBuffer(commands_), "vkEndCommandBuffer");
    auto work = zeroed<VkSubmitInfo>(VK_STRUCTURE_TYPE_SUBMIT_INFO);
    work.commandBufferCount = 1;
    work.pCommandBuffers = &commands_;
    const auto start = std::chrono::steady_clock::now();
    check(vkQueueSubmit(queue_, 1, &work, done_), "vkQueueSubmit");
    check(vkWaitForFences(device_, 1, &done_, VK_TRUE, UINT64_MAX), "vkWaitForFences");
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    check(vkResetFences(device_, 1, &done_), "vkResetFences");
    return taken.count();
  }

  void end() {
    if (device_ != VK_NULL_HANDLE) {
      vkDeviceWaitIdle(device_);
      for (const auto& [key, made] : pipelines_) vkDestroyPipeline(device_, made, nullptr);
      for (const memory& m : buffers_) release(m);
      vkDestroyDescriptorPool(device_, descriptors_, nullptr);
      vkDestroyShaderModule(device_, shader_, nullptr);
      vkDestroyPipelineLayout(device_, layout_, nullptr);
      vkDestroyDescriptorSetLayout(device_, set_layout_, nullptr);
      vkDestroyFence(device_, done_, nullptr);
      vkDestroyCommandPool(device_, pool_, nullptr);
      vkDestroyDevice(device_, nullptr);
    }
    if (instance_ != VK_NULL_HANDLE) vkDestroyInstance(instance_, nullptr);
  }

  VkInstance instance_ = VK_NULL_HANDLE;
  VkPhysicalDevice physical_ = VK_NULL_HANDLE;
  VkPhysicalDeviceProperties2 about_ =
      zeroed<VkPhysicalDeviceProperties2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2);
  VkPhysicalDeviceDriverProperties driver_ =
      zeroed<VkPhysicalDeviceDriverProperties>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES);
  VkPhysicalDeviceMemoryProperties rooms_{};
  uint32_t family_ = 0;
  VkDevice device_ = VK_NULL_HANDLE;
  VkQueue queue_ = VK_NULL_HANDLE;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;
  VkFence done_ = VK_NULL_HANDLE;
  VkDescriptorSetLayout set_layout_ = VK_NULL_HANDLE;
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  VkShaderModule shader_ = VK_NULL_HANDLE;
  VkDescriptorPool descriptors_ = VK_NULL_HANDLE;
  std::vector<VkDescriptorSet> sets_;
  uint64_t bytes_ = 0;  // of each buffer
  std::vector<memory> buffers_;
  std::map<pipeline_key, VkPipeline> pipelines_;
};

}  // namespace

std::unique_ptr<driver> open(uint32_t index) {
  return std::make_unique<vulkan_driver>(index);
}

}  // namespace bitnet::ceilings

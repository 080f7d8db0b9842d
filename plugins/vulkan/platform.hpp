#pragma once
// The Vulkan instance and the devices that can run the kernels.

#include <memory>
#include <vector>

#include "bitnet/sdk/host.hpp"
#include "device_facts.hpp"
#include "gpu-common/backend.hpp"
#include "library.hpp"

namespace bitnet::vulkan {

class platform final : public gpu::platform {
 public:
  platform(const sdk::host& services, const wishes& user) noexcept
      : services_(services), user_(user) {}
  ~platform() override;
  platform(const platform&) = delete;
  platform& operator=(const platform&) = delete;

  bitnet_status start(const sdk::reporter& report);

  const std::vector<gpu::facts>& devices() const noexcept override { return facts_; }
  bitnet_status open(uint32_t index, std::unique_ptr<gpu::device>& out,
                     const sdk::reporter& report) override;

 private:
  bitnet_status make_instance(const sdk::reporter& report);
  void listen();
  bitnet_status enumerate(const sdk::reporter& report);
  // Adds the device, or logs why it cannot be used.
  void look_at(VkPhysicalDevice device);

  const sdk::host& services_;
  const wishes user_;
  global_functions global_;
  instance_functions vk_;
  VkInstance instance_ = VK_NULL_HANDLE;
  VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
  std::vector<gpu::facts> facts_;
  std::vector<physical> physical_;
};

}  // namespace bitnet::vulkan

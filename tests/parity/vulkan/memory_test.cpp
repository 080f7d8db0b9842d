// How much memory a device has left, with drivers that report it, do not, or report nonsense. No
// driver in software reports it, so the driver's answers are made here.

#include <gtest/gtest.h>

#include "bitnet/abi/answers.h"
#include "vulkan/device_facts.hpp"

namespace bitnet::vulkan {
namespace {

uint64_t budget = 0, usage = 0;

TEST(vulkan_memory, is_reported_where_the_driver_reports_it) {
  const struct {
    const char* why;
    bool extension;
    uint32_t heap;
    uint64_t budget, usage;
    bool known;
    uint64_t free;
  } rows[] = {
      {"others have 100, we 300", true, 1, 900, 300, true, 600},
      {"nothing is left", true, 1, 900, 900, true, 0},
      {"more is in use than we may", true, 1, 900, 950, true, 0},
      {"a budget above the heap", true, 1, 5000, 100, true, 1000},
      {"a driver that does not know", true, 1, 0, 0, false, 0},
      {"no extension", false, 1, 900, 300, false, 0},
      {"no memory of its own", true, BITNET_NONE, 900, 300, false, 0},
      {"a heap that is not there", true, 2, 900, 300, false, 0},
  };
  instance_functions vk;
  vk.vkGetPhysicalDeviceMemoryProperties2 = [](VkPhysicalDevice,
                                               VkPhysicalDeviceMemoryProperties2* out) {
    auto* answer = static_cast<VkPhysicalDeviceMemoryBudgetPropertiesEXT*>(out->pNext);
    answer->heapBudget[0] = 7;  // the host's memory
    answer->heapBudget[1] = budget;
    answer->heapUsage[1] = usage;
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.why);
    budget = row.budget;
    usage = row.usage;
    physical device;
    device.memory_budget = row.extension;
    device.own_heap = row.heap;
    device.memory.memoryHeapCount = 2;
    device.memory.memoryHeaps[0].size = 9999;
    device.memory.memoryHeaps[1].size = 1000;
    bitnet_device_status s{};
    s.struct_size = sizeof s;
    add_memory(vk, device, s);
    EXPECT_EQ(s.known, row.known ? BITNET_STATUS_MEMORY : 0u);
    EXPECT_EQ(s.memory_total_bytes, row.known ? 1000u : 0u);
    EXPECT_EQ(s.memory_free_bytes, row.free);
    EXPECT_EQ(bitnet_wrong_device_status(&s), nullptr);
  }
}

TEST(vulkan_errors, carry_the_drivers_number) {
  for (const VkResult result :
       {VK_ERROR_DEVICE_LOST, VK_ERROR_OUT_OF_DEVICE_MEMORY, VK_ERROR_UNKNOWN}) {
    bitnet_error err{};
    err.struct_size = sizeof err;
    EXPECT_NE(check(result, "vkX", sdk::reporter(&err, "slot")), BITNET_OK);
    EXPECT_EQ(err.native_code, result);
    EXPECT_STREQ(err.domain, "vulkan");
  }
}

}  // namespace
}  // namespace bitnet::vulkan

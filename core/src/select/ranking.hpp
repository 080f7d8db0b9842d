#pragma once
// Ranks devices by facts about them.
//
// Order   Class (gpu, npu, cpu, other); a processor's own backend before one that shows it through
//         a driver for other devices; how much of a ternary model its kernels fuse; memory in GiB;
//         the manifest's priority; on a tie the measured speed, if it differs clearly; name and
//         index, so that the order is total.
// Same    Of backends for the same hardware, one that was clearly faster in the probe comes first,
//         whatever the facts above: a maker's own interface may be the slower one.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "bitnet/abi/info.h"
#include "probe/outcome.hpp"

namespace bitnet::select {

struct score {
  uint32_t device_class = 0;  // BITNET_DEVICE_*
  uint32_t kernels = 0;       // BITNET_LEVEL_*: the best for ternary weights
  uint64_t memory_gib = 0;    // 0: unknown
  int32_t priority = 0;
  probe::product_rates rates{};
  bool software = false;  // the processor, through a driver for other devices

  // Measured speed in steps of a factor of 1.4, since measurements vary.
  [[nodiscard]] uint32_t speed_step() const;
};

// `manifest_class`: the device class in the manifest.
[[nodiscard]] score score_of(const probe::device_report& device, int32_t priority,
                             uint32_t manifest_class = 0);
// Higher is better.
[[nodiscard]] uint32_t class_order(uint32_t device_class);
// Higher is better.
[[nodiscard]] std::tuple<uint32_t, bool, uint32_t, uint64_t, int32_t, uint32_t> order_of(
    const score& s);
// Why `low` ranks lower: "gpu comes before cpu".
[[nodiscard]] std::string why_behind(const score& high, const score& low);
[[nodiscard]] const char* level_name(uint32_t level);  // "fused"
// The type that a kernel rounds to, "f16"; nullptr if it does not round.
[[nodiscard]] const char* precision_name(uint32_t precision);
// Shared, for counters that outlive the report.
[[nodiscard]] std::shared_ptr<const std::vector<bitnet_kernel_info>> kernels_of(
    const probe::device_report& device);

// Whether two backends show the same device: by PCI address, else by UUID; false for CPUs.
[[nodiscard]] bool is_same_hardware(const bitnet_device_info& a, const bitnet_device_info& b);

// One device as one backend shows it.
struct contender {
  const bitnet_device_info* info;
  score facts;
  std::string_view backend;
  uint32_t index;
};
// Indices, best first.
[[nodiscard]] std::vector<std::size_t> order(std::span<const contender> all);
// Why order() ranks `low` below `high`: "measured 2.1 times as fast on the same device: ...", or
// the text of why_behind().
[[nodiscard]] std::string why_lower(const contender& high, const contender& low);

}  // namespace bitnet::select

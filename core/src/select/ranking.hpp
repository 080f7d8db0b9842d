#pragma once
// Which of two devices is the better one: the core's judgement, from facts.
//
// Order   the class (gpu, npu, cpu, other); a processor by its own backend before one that a driver
//         of other devices shows; how much of a ternary model its kernels do in one go; its memory,
//         in GiB; the priority that manifests give to a backend; where all that ties, how fast it
//         was when it was probed, if that differs clearly; name and index, so that the order is
//         total.
// Same    Of backends that show the same hardware, one that was clearly faster when it was probed
//         comes first, whatever the facts above say: a maker's own interface may be the slower one.

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
  uint64_t memory_gib = 0;    // 0: not known
  int32_t priority = 0;
  probe::product_rates rates{};
  bool software = false;  // the processor, shown by a driver of other devices

  // Measured speeds count in steps of a factor of 1.4, for no two measurements agree.
  [[nodiscard]] uint32_t speed_step() const;
};

// `manifest_class` is what the backend says that it drives.
[[nodiscard]] score score_of(const probe::device_report& device, int32_t priority,
                             uint32_t manifest_class = 0);
// Higher is better.
[[nodiscard]] uint32_t class_order(uint32_t device_class);
// Higher is better.
[[nodiscard]] std::tuple<uint32_t, bool, uint32_t, uint64_t, int32_t, uint32_t> order_of(
    const score& s);
// Why the one with `low` came behind: "gpu comes before cpu".
[[nodiscard]] std::string why_behind(const score& high, const score& low);
[[nodiscard]] const char* level_name(uint32_t level);  // "fused"
// What a kernel rounds to, "f16"; nullptr where it does not.
[[nodiscard]] const char* precision_name(uint32_t precision);
// For whatever counts by them after the report is gone.
[[nodiscard]] std::shared_ptr<const std::vector<bitnet_kernel_info>> kernels_of(
    const probe::device_report& device);

// Do two backends show the same device? By PCI address, else by UUID; never of CPUs.
[[nodiscard]] bool is_same_hardware(const bitnet_device_info& a, const bitnet_device_info& b);

// A device among others, as a backend shows it.
struct contender {
  const bitnet_device_info* info;
  score facts;
  std::string_view backend;
  uint32_t index;
};
// Their numbers, best first.
[[nodiscard]] std::vector<std::size_t> order(std::span<const contender> all);
// Why order() put `low` behind `high`: "measured 2.1 times as fast on the same device: ...", or
// what why_behind() says.
[[nodiscard]] std::string why_lower(const contender& high, const contender& low);

}  // namespace bitnet::select

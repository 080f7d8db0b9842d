#include "select/ranking.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "bitnet/abi/ops.h"
#include "bitnet/abi/tensor.h"
#include "plugin/codes/text.hpp"
#include "plugin/manifest/manifest.hpp"
#include "text/ascii.hpp"

namespace bitnet::select {
namespace {

// Letters and digits in lower case: "GPU-8A7B.." and "8a7b.." are one UUID.
std::string essence(std::string_view text) {
  std::string out;
  for (const char c : lower_ascii(std::string(text)))
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) out += c;
  return out.starts_with("gpu") ? out.substr(3) : out;
}

// With its domain, which some leave out when it is 0 and some write with eight digits.
std::string pci_address(const bitnet_device_info& d) {
  const std::string text = lower_ascii(plugin::printable_array(d.pci_address));
  const auto colons = std::ranges::count(text, ':');
  if (colons == 1) return "0:" + text;
  if (colons != 2) return "";
  const std::size_t end = text.find(':');
  const std::size_t digit = std::min(text.find_first_not_of('0'), end - (end == 0 ? 0 : 1));
  return text.substr(digit);
}

std::string in_millions(uint64_t n) {
  return n == 0 ? "an unknown number of" : fmt::format("{} million", n / 1'000'000);
}

}  // namespace

uint32_t class_order(uint32_t device_class) {
  constexpr std::array<uint32_t, 4> worst_first = {BITNET_DEVICE_OTHER, BITNET_DEVICE_CPU,
                                                   BITNET_DEVICE_NPU, BITNET_DEVICE_GPU};
  return static_cast<uint32_t>(std::ranges::find(worst_first, device_class) - worst_first.begin());
}

score score_of(const probe::device_report& device, int32_t priority, uint32_t manifest_class) {
  score out;
  out.device_class = device.info.device_class;
  out.software = out.device_class == BITNET_DEVICE_CPU && manifest_class != 0 &&
                 manifest_class != BITNET_DEVICE_CPU;
  out.memory_gib = device.info.memory_total_bytes >> 30;
  out.priority = priority;
  out.products_per_s = device.products_per_s;
  for (const bitnet_kernel_info& k : device.kernels)
    if (k.format == BITNET_FORMAT_TERNARY2 && k.level <= BITNET_LEVEL_FUSED)
      out.kernels = std::max(out.kernels, k.level);
  return out;
}

uint32_t score::speed_step() const {
  if (products_per_s == 0) return 0;
  return static_cast<uint32_t>(std::lround(std::log2(static_cast<double>(products_per_s)) * 2)) + 1;
}

std::tuple<uint32_t, bool, uint32_t, uint64_t, int32_t, uint32_t> order_of(const score& s) {
  return {class_order(s.device_class),
          !s.software,
          s.kernels,
          s.memory_gib,
          s.priority,
          s.speed_step()};
}

const char* precision_name(uint32_t precision) {
  constexpr std::array names = {"tf32", "f16", "bf16"};
  if (precision == BITNET_PRECISION_F32) return nullptr;
  return precision <= names.size() ? names[precision - 1] : "unknown";
}

std::shared_ptr<const std::vector<bitnet_kernel_info>> kernels_of(
    const probe::device_report& device) {
  return std::make_shared<const std::vector<bitnet_kernel_info>>(device.kernels);
}

const char* level_name(uint32_t level) {
  switch (level) {
    case BITNET_LEVEL_REFERENCE:
      return "reference";
    case BITNET_LEVEL_OPTIMISED:
      return "optimised";
    case BITNET_LEVEL_FUSED:
      return "fused";
    default:
      return "none";
  }
}

std::string why_behind(const score& high, const score& low) {
  if (high.device_class != low.device_class)
    return fmt::format("{} comes before {}", plugin::class_name(high.device_class),
                       plugin::class_name(low.device_class));
  if (high.software != low.software)
    return "a processor's own backend comes before a driver in software";
  if (high.kernels != low.kernels)
    return fmt::format("{} ternary kernels come before {}", level_name(high.kernels),
                       low.kernels == 0 ? "none" : level_name(low.kernels));
  if (high.memory_gib != low.memory_gib)
    return fmt::format("{} GiB of memory is more than {}", high.memory_gib, low.memory_gib);
  if (high.priority != low.priority)
    return fmt::format("priority {} is above {}", high.priority, low.priority);
  if (high.speed_step() != low.speed_step())
    return fmt::format(
        "equal in class, kernels, memory and priority, and measured faster: {} ternary products a "
        "second, not {}",
        in_millions(high.products_per_s), in_millions(low.products_per_s));
  return "equal in class, kernels, memory, priority and measured speed, so the name decides";
}

bool is_same_hardware(const bitnet_device_info& a, const bitnet_device_info& b) {
  if (a.device_class == BITNET_DEVICE_CPU || b.device_class == BITNET_DEVICE_CPU) return false;
  const std::string pci = pci_address(a);
  if (!pci.empty() && !pci_address(b).empty()) return pci == pci_address(b);
  const std::string uuid = essence(plugin::printable_array(a.uuid));
  return !uuid.empty() && uuid == essence(plugin::printable_array(b.uuid));
}

}  // namespace bitnet::select

#include "select/ranking.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string_view>

#include "bitnet/abi/ops.h"
#include "bitnet/abi/tensor.h"
#include "plugin/codes/text.hpp"
#include "plugin/manifest/manifest.hpp"
#include "probe/golden.hpp"
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

// With its domain: some backends omit domain 0, some write eight digits.
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

// How many times as fast as b: by the geometric mean of the rates for a token and a prompt, or by
// the small step if one lacks these. 1: unknown.
double times_as_fast(const probe::product_rates& a, const probe::product_rates& b) {
  const auto ratio = [](uint64_t x, uint64_t y) {
    return x == 0 || y == 0 ? 0 : static_cast<double>(x) / static_cast<double>(y);
  };
  if (const double large = ratio(a.token, b.token) * ratio(a.prompt, b.prompt); large > 0)
    return std::sqrt(large);
  const double small = ratio(a.small, b.small);
  return small > 0 ? small : 1;
}

// The difference is larger than that between two measurements of one device.
bool is_clearly_faster(const probe::product_rates& a, const probe::product_rates& b) {
  constexpr double clearly = 1.1;
  return times_as_fast(a, b) > clearly;
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
  out.rates = device.rates;
  for (const bitnet_kernel_info& k : device.kernels)
    if (k.format == BITNET_FORMAT_TERNARY2 && k.level <= BITNET_LEVEL_FUSED)
      out.kernels = std::max(out.kernels, k.level);
  return out;
}

uint32_t score::speed_step() const {
  if (rates.small == 0) return 0;
  return static_cast<uint32_t>(std::lround(std::log2(static_cast<double>(rates.small)) * 2)) + 1;
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
        in_millions(high.rates.small), in_millions(low.rates.small));
  return "equal in class, kernels, memory, priority and measured speed, so the name decides";
}

std::vector<std::size_t> order(std::span<const contender> all) {
  std::vector<std::size_t> out(all.size());
  std::iota(out.begin(), out.end(), std::size_t{0});
  std::ranges::sort(out, [&](std::size_t a, std::size_t b) {
    const auto mine = order_of(all[a].facts), theirs = order_of(all[b].facts);
    if (mine != theirs) return mine > theirs;
    return std::tuple(all[a].backend, all[a].index) < std::tuple(all[b].backend, all[b].index);
  });
  for (auto at = out.begin(); at != out.end(); ++at) {
    auto best = at;
    for (auto other = std::next(at); other != out.end(); ++other)
      if (all[*other].backend != all[*at].backend &&
          is_same_hardware(*all[*other].info, *all[*at].info) &&
          is_clearly_faster(all[*other].facts.rates, all[*best].facts.rates))
        best = other;
    std::rotate(at, best, std::next(best));
  }
  return out;
}

std::string why_lower(const contender& high, const contender& low) {
  const auto &a = high.facts.rates, &b = low.facts.rates;
  if (high.backend == low.backend || !is_same_hardware(*high.info, *low.info) ||
      (!is_clearly_faster(a, b) && order_of(high.facts) >= order_of(low.facts)))
    return why_behind(high.facts, low.facts);
  const std::string times =
      fmt::format("measured {:.1f} times as fast on the same device", times_as_fast(a, b));
  if (a.token == 0 || b.token == 0 || a.prompt == 0 || b.prompt == 0)
    return fmt::format("{}: {} ternary products a second, not {}", times, in_millions(a.small),
                       in_millions(b.small));
  return fmt::format(
      "{}: {} ternary products a second with one token, not {}; {} with {} tokens, not {}", times,
      in_millions(a.token), in_millions(b.token), in_millions(a.prompt), probe::timed_tokens,
      in_millions(b.prompt));
}

bool is_same_hardware(const bitnet_device_info& a, const bitnet_device_info& b) {
  if (a.device_class == BITNET_DEVICE_CPU || b.device_class == BITNET_DEVICE_CPU) return false;
  const std::string pci = pci_address(a);
  if (!pci.empty() && !pci_address(b).empty()) return pci == pci_address(b);
  const std::string uuid = essence(plugin::printable_array(a.uuid));
  return !uuid.empty() && uuid == essence(plugin::printable_array(b.uuid));
}

}  // namespace bitnet::select

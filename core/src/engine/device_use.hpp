#pragma once
// What ran on one device: the counters that a backend keeps while its kernels run, with the facts
// of the device and of the copy of the backend that kept them. They outlive both, so that a
// sequence that moved still says what each place did.
//
// Authors of backends choose the names of kernels: two backends may use one name, so uses of two
// devices, or of two copies of a backend, are never added up.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bitnet/abi/info.h"
#include "bitnet/abi/program.h"
#include "engine/part.hpp"
#include "plugin/trust/trust.hpp"

namespace bitnet::engine {

struct device_use {
  std::string backend, version, build_id;
  std::string device;  // "cpu:0"
  bitnet_device_info about{};
  std::shared_ptr<const plugin::trusted_file> library;  // that the counters are of
  std::shared_ptr<const std::vector<bitnet_kernel_info>> known;
  std::vector<bitnet_kernel_stat> kernels;

  // What the device listed of a kernel that ran; nothing: it did not list it. One that is listed
  // for several formats has format BITNET_FORMAT_NONE here, and the lowest of its levels: its
  // counters are of all of them.
  [[nodiscard]] std::optional<bitnet_kernel_info> describe(const bitnet_kernel_stat& kernel) const;
};

[[nodiscard]] device_use use_of(const part& on, std::vector<bitnet_kernel_stat> kernels);

// Adds the counts of `more` to those of the same copies and devices.
void add(std::vector<device_use>& to, const std::vector<device_use>& more);

// What was counted since `before`, which the same counters gave earlier. Kernels that did not run
// since are not in it.
[[nodiscard]] std::vector<device_use> since(const std::vector<device_use>& before,
                                            std::vector<device_use> now);

}  // namespace bitnet::engine

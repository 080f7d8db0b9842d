#pragma once
// The use of one device: the counters that a backend keeps while its kernels run, with the facts of
// the device and of the backend's copy. They outlive both, so that a sequence that moved still
// reports what each device did.
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
  std::shared_ptr<const plugin::trusted_file> library;  // whose counters these are
  std::shared_ptr<const std::vector<bitnet_kernel_info>> known;
  std::vector<bitnet_kernel_stat> kernels;

  // Returns what the device listed about a kernel that ran; nullopt: it did not list it. If the
  // kernel is listed for several formats, its format here is BITNET_FORMAT_NONE and its level the
  // lowest of theirs, since its counters are those of all formats.
  [[nodiscard]] std::optional<bitnet_kernel_info> describe(const bitnet_kernel_stat& kernel) const;
};

[[nodiscard]] device_use use_of(const part& on, std::vector<bitnet_kernel_stat> kernels);

// Adds the counts of `more` to those of the same copies and devices.
void add(std::vector<device_use>& to, const std::vector<device_use>& more);

// Returns what was counted since `before`, an earlier result of the same counters. Kernels that did
// not run since are left out.
[[nodiscard]] std::vector<device_use> since(const std::vector<device_use>& before,
                                            std::vector<device_use> now);

}  // namespace bitnet::engine

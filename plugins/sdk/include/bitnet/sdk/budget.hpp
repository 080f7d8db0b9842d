// SPDX-License-Identifier: Apache-2.0 OR MIT
#pragma once
// Most memory that a device may hold, bitnet_device_request::memory_bytes, and rules for its pages.
//
// Threads  any.

#include <atomic>
#include <cstdint>
#include <new>
#include <utility>

#include "bitnet/sdk/nodes.hpp"

namespace bitnet::sdk {

// guard.hpp reports it as BITNET_OUT_OF_MEMORY, with these numbers.
struct over_budget : std::bad_alloc {
  over_budget(uint64_t may, uint64_t has, uint64_t more) noexcept
      : most(may), used(has), wanted(more) {}
  uint64_t most, used, wanted;  // bytes
};

class budget {
 public:
  explicit budget(uint64_t most = 0, memory_rules rules = {}) noexcept  // 0: no bound
      : most_(most), rules_(std::move(rules)) {}
  budget(const budget&) = delete;
  budget& operator=(const budget&) = delete;

  // Throws over_budget and takes nothing if the sum would exceed the bound.
  void take(uint64_t bytes) {
    uint64_t used = used_.load();
    do {
      if (most_ != 0 && bytes > most_ - used) throw over_budget(most_, used, bytes);
    } while (!used_.compare_exchange_weak(used, used + bytes));
  }
  void give(uint64_t bytes) noexcept { used_ -= bytes; }
  uint64_t used() const noexcept { return used_.load(); }
  const memory_rules& rules() const noexcept { return rules_; }

 private:
  const uint64_t most_;
  const memory_rules rules_;
  std::atomic<uint64_t> used_{0};
};

}  // namespace bitnet::sdk

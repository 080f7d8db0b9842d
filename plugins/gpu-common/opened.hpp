#pragma once
// An opened device with what its children share: the lock of the driver, the memory pool, compiled
// kernels, and the queues, so that nothing is destroyed under running work.

#include <algorithm>
#include <atomic>
#include <mutex>
#include <string>
#include <vector>

#include "driver.hpp"
#include "memory_pool.hpp"

namespace bitnet::gpu {

// Kernels are compiled when they are first needed, once for each set of constants.
class kernel_set {
 public:
  explicit kernel_set(device& driver) noexcept : driver_(driver) {}
  // The driver's lock is held.
  bitnet_status get(const kernel_spec& spec, const kernel*& out, const sdk::reporter& report) {
    for (const auto& [known, compiled] : compiled_) {
      if (known != spec) continue;
      out = compiled.get();
      return BITNET_OK;
    }
    std::unique_ptr<kernel> made;
    if (bitnet_status s = driver_.make_kernel(spec, made, report); sdk::failed(s)) return s;
    out = compiled_.emplace_back(spec, std::move(made)).second.get();
    return BITNET_OK;
  }

 private:
  device& driver_;
  std::vector<std::pair<kernel_spec, std::unique_ptr<kernel>>> compiled_;
};

// A queue of the contract.
struct running {
  std::unique_ptr<gpu::queue> work;
  std::atomic<uint64_t> submitted{0};

  // Until everything submitted is done. [any]
  bitnet_status settle(uint64_t timeout_ns, const sdk::reporter& report) const {
    const uint64_t value = submitted.load();
    return value == 0 ? BITNET_OK : work->wait(value, timeout_ns, report);
  }
};

struct opened {
  opened(std::unique_ptr<device> d, const sdk::host& host_services, std::string own_name,
         std::vector<std::string> disabled_ids)
      : services(host_services),
        name(std::move(own_name)),
        disabled(std::move(disabled_ids)),
        driver(std::move(d)),
        pool(*driver, lock, services, {}),
        kernels(*driver) {}

  const facts& about() const noexcept { return driver->describe(); }
  uint64_t align(uint64_t bytes) const noexcept {
    const uint64_t to = std::max<uint64_t>(about().binding_alignment, 64);
    return (bytes + to - 1) / to * to;
  }
  bool is_disabled(const std::string& id) const {
    return std::find(disabled.begin(), disabled.end(), id) != disabled.end();
  }
  // Until no queue of the device works.
  bitnet_status settle(uint64_t timeout_ns, const sdk::reporter& report) {
    std::vector<std::shared_ptr<running>> all;
    {
      const std::scoped_lock guard(queues_lock);
      all = queues;
    }
    for (const auto& q : all)
      if (bitnet_status s = q->settle(timeout_ns, report); sdk::failed(s)) return s;
    return BITNET_OK;
  }
  // Before something that running steps may use is destroyed. A lost device does not use it either.
  void settle() noexcept {
    sdk::guarded(nullptr, "destroy",
                 [&](const sdk::reporter& report) { return settle(UINT64_MAX, report); });
  }

  const sdk::host& services;
  const std::string name;  // of the backend: the last part of kernel ids
  const std::vector<std::string> disabled;
  std::mutex lock;  // of the driver
  std::unique_ptr<device> driver;
  memory_pool pool;
  kernel_set kernels;
  std::mutex queues_lock;
  std::vector<std::shared_ptr<running>> queues;
};

}  // namespace bitnet::gpu

#pragma once
// An opened device and what its children share: the driver's lock, the memory pool, compiled
// kernels and the queues. Destructors wait for the queues, so no running work loses its memory.

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "driver.hpp"
#include "gpu-common/memory/memory_pool.hpp"

namespace bitnet::gpu {

// Kernels are compiled when they are first needed, once for each set of constants.
class kernel_set {
 public:
  explicit kernel_set(device& driver) noexcept : driver_(driver) {}
  // The caller holds the driver's lock.
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

// Copies submitted to a queue, and the host's work after they are done.
struct transfer {
  uint64_t value;  // of the timeline
  std::unique_ptr<recording> commands;
  lease staging;
  std::function<void()> finish;  // may be empty
};

// A queue of the contract. [any]
class running {
 public:
  running(std::unique_ptr<gpu::queue> made, std::mutex& driver_lock) noexcept
      : work(std::move(made)), driver_lock_(driver_lock) {}

  bitnet_status wait(uint64_t value, uint64_t timeout_ns, const sdk::reporter& report) {
    if (value == 0) return BITNET_OK;
    if (bitnet_status s = work->wait(value, timeout_ns, report); sdk::failed(s)) return s;
    retire(value);
    return BITNET_OK;
  }
  bitnet_status poll(uint64_t& value, const sdk::reporter& report) {
    if (bitnet_status s = work->poll(value, report); sdk::failed(s)) return s;
    retire(value);
    return BITNET_OK;
  }
  // Waits until all submitted work is done.
  bitnet_status settle(uint64_t timeout_ns, const sdk::reporter& report) {
    return wait(submitted.load(), timeout_ns, report);
  }
  // Submits `t`; values of successive calls ascend.
  bitnet_status start(transfer t, const sdk::reporter& report) {
    const std::scoped_lock guard(lock_);
    transfers_.reserve(transfers_.size() + 1);  // a failure behind submit() would lose the transfer
    {
      const std::scoped_lock driver(driver_lock_);
      if (bitnet_status s = work->submit(*t.commands, t.value, report); sdk::failed(s)) return s;
    }
    submitted.store(t.value);
    transfers_.push_back(std::move(t));
    return BITNET_OK;
  }

  const std::unique_ptr<gpu::queue> work;
  std::atomic<uint64_t> submitted{0};

 private:
  // Finishes transfers up to `reached`. A value is reported only after the host's part is done.
  void retire(uint64_t reached) {
    std::vector<transfer> done;
    const std::scoped_lock guard(lock_);
    while (!transfers_.empty() && transfers_.front().value <= reached) {
      if (transfers_.front().finish) transfers_.front().finish();
      done.push_back(std::move(transfers_.front()));
      transfers_.erase(transfers_.begin());
    }
    const std::scoped_lock driver(driver_lock_);
    for (transfer& t : done) t.commands.reset();
  }

  std::mutex& driver_lock_;
  std::mutex lock_;
  std::vector<transfer> transfers_;  // ascending
};

// Device memory that an object of the core owns outside the pool. device_status reports the sum.
class holding {
 public:
  holding(std::atomic<uint64_t>& sum, sdk::budget& lent) noexcept : sum_(sum), lent_(lent) {}
  ~holding() {
    sum_ -= bytes_;
    lent_.give(bytes_);
  }
  holding(const holding&) = delete;
  holding& operator=(const holding&) = delete;
  // Throws sdk::over_budget before anything is allocated.
  void add(uint64_t bytes) {
    lent_.take(bytes);
    bytes_ += bytes;
    sum_ += bytes;
  }

 private:
  std::atomic<uint64_t>& sum_;
  sdk::budget& lent_;
  uint64_t bytes_ = 0;
};

// Alignment of buffers and of offsets in them.
inline uint64_t alignment_of(const capabilities& can) noexcept {
  return std::max<uint64_t>(can.binding_alignment, 64);
}

struct opened {
  opened(std::unique_ptr<device> d, const sdk::host& host_services, std::string own_name,
         std::vector<std::string> disabled_ids, uint64_t memory_bytes,
         const memory_pool_config& pooled = {})
      : services(host_services),
        name(std::move(own_name)),
        disabled(std::move(disabled_ids)),
        driver(std::move(d)),
        watcher(driver->watcher()),
        lent(memory_bytes),
        pool(*driver, lock, services, lent, pooled),
        kernels(*driver) {}

  const facts& about() const noexcept { return driver->describe(); }
  const gpu::capabilities& capabilities() const noexcept { return about().capabilities; }
  const gpu::quirks& quirks() const noexcept { return about().quirks; }
  uint64_t align(uint64_t bytes) const noexcept {
    const uint64_t to = alignment_of(capabilities());
    return (bytes + to - 1) / to * to;
  }
  bool is_disabled(const std::string& id) const {
    return std::find(disabled.begin(), disabled.end(), id) != disabled.end();
  }
  // Waits until no queue of the device has work.
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
  // Waits before destroying something that running steps may use. A lost device runs no steps.
  void settle() noexcept {
    sdk::guarded(nullptr, "destroy",
                 [&](const sdk::reporter& report) { return settle(UINT64_MAX, report); });
  }

  // Reports the driver's values and gpu-common's own counts. [any]
  bitnet_status status(bitnet_device_status& out, const sdk::reporter& report) const {
    if (bitnet_status s = driver->status(out, report); sdk::failed(s)) return s;
    const uint64_t held = held_bytes.load();
    const memory_stats pooled = pool.stats();
    out.known |= BITNET_STATUS_POOL | BITNET_STATUS_POOL_USE;
    out.pool_used_bytes = held + pooled.current_bytes;
    out.pool_bytes = held + pooled.current_bytes + pooled.idle_bytes;
    out.pool_peak_bytes = pooled.peak_bytes;
    out.pool_hits = pooled.hits;
    out.pool_misses = pooled.misses;
    return BITNET_OK;
  }

  const sdk::host& services;
  const std::string name;  // of the backend: the last part of kernel ids
  const std::vector<std::string> disabled;
  std::mutex lock;  // of the driver
  std::unique_ptr<device> driver;
  gpu::watcher* const watcher;  // for range; nullptr: no profiler
  sdk::budget lent;
  std::atomic<uint64_t> held_bytes{0};  // weights and KV pools; see holding
  memory_pool pool;
  kernel_set kernels;
  std::mutex queues_lock;
  std::vector<std::shared_ptr<running>> queues;
};

}  // namespace bitnet::gpu

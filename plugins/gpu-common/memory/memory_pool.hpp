#pragma once
// Reuses a device's buffers of steps and activations. Weights and KV pools live as long as their
// owners and do not pass through here.
//
// Strategy a request takes a cached buffer of the same size and place, or makes one. A returned
// buffer is cached. A buffer that stays unused for cleanup_interval is freed at the next use of the
// pool; the pool has no thread of its own.
// Threads  any; the device's lock is not held.

#include <list>
#include <mutex>

#include "bitnet/sdk/host.hpp"
#include "gpu-common/driver.hpp"

namespace bitnet::gpu {

struct memory_pool_config {
  uint64_t max_pool_size = uint64_t{2} << 30;  // bytes, used and cached together
  uint32_t max_cached_buffers = 1000;
  bool enable_memory_tracking = true;
  uint64_t cleanup_interval_ns = 30'000'000'000;
};

struct memory_stats {
  uint64_t allocated_bytes = 0, freed_bytes = 0;  // by the driver, in total
  uint64_t current_bytes = 0, peak_bytes = 0;     // in use, not cached
  uint64_t idle_bytes = 0;                        // cached
  uint64_t allocations = 0, frees = 0;
  uint64_t hits = 0, misses = 0;
};

class memory_pool;

// A buffer on loan. The destructor returns it to the pool.
class lease {
 public:
  lease() = default;
  lease(memory_pool& from, std::unique_ptr<buffer> memory, memory_place where) noexcept
      : from_(&from), memory_(std::move(memory)), where_(where) {}
  lease(lease&&) noexcept = default;
  lease& operator=(lease&& other) noexcept {
    std::swap(from_, other.from_);
    std::swap(memory_, other.memory_);
    std::swap(where_, other.where_);
    return *this;
  }
  ~lease();

  buffer* get() const noexcept { return memory_.get(); }
  explicit operator bool() const noexcept { return memory_ != nullptr; }

 private:
  memory_pool* from_ = nullptr;
  std::unique_ptr<buffer> memory_;
  memory_place where_{};
};

class memory_pool {
 public:
  memory_pool(device& driver, std::mutex& driver_lock, const sdk::host& services, sdk::budget& lent,
              const memory_pool_config& config) noexcept
      : driver_(driver),
        driver_lock_(driver_lock),
        services_(services),
        lent_(lent),
        config_(config) {}
  ~memory_pool();  // logs the buffers that were not returned

  // Memory for the host is zeroed. BITNET_OUT_OF_DEVICE_MEMORY past max_pool_size; throws
  // sdk::over_budget if freeing cached buffers cannot make room.
  bitnet_status take(uint64_t bytes, memory_place where, lease& out, const sdk::reporter& report);
  memory_stats stats() const;

 private:
  friend class lease;
  struct cached {
    std::unique_ptr<buffer> memory;
    memory_place where;
    uint64_t since_ns;
  };

  void give(std::unique_ptr<buffer> memory, memory_place where) noexcept;
  void expire(uint64_t now_ns);
  void free_oldest();
  void borrow(uint64_t bytes);

  device& driver_;
  std::mutex& driver_lock_;
  const sdk::host& services_;
  sdk::budget& lent_;  // of buffers, used and cached
  const memory_pool_config config_;
  mutable std::mutex lock_;
  std::list<cached> idle_;  // the oldest first
  uint64_t used_bytes_ = 0, idle_bytes_ = 0;
  memory_stats stats_;
};

}  // namespace bitnet::gpu

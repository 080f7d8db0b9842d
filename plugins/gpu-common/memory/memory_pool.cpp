#include "memory_pool.hpp"

#include <algorithm>
#include <cstring>
#include <new>

namespace bitnet::gpu {

lease::~lease() {
  if (memory_) from_->give(std::move(memory_), where_);
}

memory_pool::~memory_pool() {
  if (!config_.enable_memory_tracking || used_bytes_ == 0) return;
  services_.log(BITNET_LOG_WARN, "memory pool",
                std::to_string(used_bytes_) +
                    " bytes were not returned before the device was closed; report it with the "
                    "version of bitnet");
}

bitnet_status memory_pool::take(uint64_t bytes, memory_place where, lease& out,
                                const sdk::reporter& report) {
  const auto too_much = [&] {
    return report.fail(BITNET_OUT_OF_DEVICE_MEMORY,
                       "the limit of activations and step buffers is %llu bytes: %llu are in use "
                       "and %llu more are needed; use a smaller batch",
                       static_cast<unsigned long long>(config_.max_pool_size),
                       static_cast<unsigned long long>(used_bytes_),
                       static_cast<unsigned long long>(bytes));
  };
  std::unique_ptr<buffer> memory;
  {
    const std::scoped_lock lock(lock_);
    if (bytes > config_.max_pool_size) return too_much();  // first: sums of it could wrap
    bytes = std::max<uint64_t>((bytes + 3) / 4 * 4, 4);
    expire(services_.now_ns());
    const auto found = std::find_if(idle_.begin(), idle_.end(), [&](const cached& c) {
      return c.where == where && c.memory->size() == bytes;
    });
    if (found != idle_.end()) {
      memory = std::move(found->memory);
      idle_.erase(found);
      idle_bytes_ -= bytes;
      ++stats_.hits;
    } else {
      while (!idle_.empty() && used_bytes_ + idle_bytes_ + bytes > config_.max_pool_size)
        free_oldest();
      if (used_bytes_ + bytes > config_.max_pool_size) return too_much();
      borrow(bytes);
      ++stats_.misses;
    }
    used_bytes_ += bytes;
  }
  if (memory) {
    if (memory->mapped()) std::memset(memory->mapped(), 0, bytes);
  } else {
    bitnet_status made = BITNET_OK;
    {
      const std::scoped_lock driver(driver_lock_);
      made = driver_.allocate(bytes, where, memory, report);
    }
    const std::scoped_lock lock(lock_);
    if (made != BITNET_OK) {
      used_bytes_ -= bytes;
      lent_.give(bytes);
      return made;
    }
    ++stats_.allocations;
    stats_.allocated_bytes += bytes;
  }
  {
    const std::scoped_lock lock(lock_);
    stats_.current_bytes = used_bytes_;
    stats_.peak_bytes = std::max(stats_.peak_bytes, used_bytes_);
  }
  out = lease(*this, std::move(memory), where);
  return BITNET_OK;
}

void memory_pool::give(std::unique_ptr<buffer> memory, memory_place where) noexcept {
  const std::scoped_lock lock(lock_);
  const uint64_t bytes = memory->size(), now = services_.now_ns();
  used_bytes_ -= bytes;
  stats_.current_bytes = used_bytes_;
  expire(now);
  if (idle_.size() >= std::max(config_.max_cached_buffers, 1u)) free_oldest();
  try {
    idle_.push_back({std::move(memory), where, now});
    idle_bytes_ += bytes;
    if (config_.max_cached_buffers == 0) free_oldest();
  } catch (const std::bad_alloc&) {  // no room in the list: the buffer is freed
    lent_.give(bytes);
    ++stats_.frees;
    stats_.freed_bytes += bytes;
  }
}

memory_stats memory_pool::stats() const {
  const std::scoped_lock lock(lock_);
  memory_stats out = stats_;
  out.current_bytes = used_bytes_;
  out.idle_bytes = idle_bytes_;
  return out;
}

void memory_pool::expire(uint64_t now_ns) {
  while (!idle_.empty() && now_ns - idle_.front().since_ns > config_.cleanup_interval_ns)
    free_oldest();
}

void memory_pool::borrow(uint64_t bytes) {
  for (;;) {
    try {
      return lent_.take(bytes);
    } catch (const sdk::over_budget&) {
      if (idle_.empty()) throw;
    }
    free_oldest();
  }
}

void memory_pool::free_oldest() {
  const uint64_t bytes = idle_.front().memory->size();
  {
    const std::scoped_lock driver(driver_lock_);
    idle_.pop_front();
  }
  idle_bytes_ -= bytes;
  lent_.give(bytes);
  ++stats_.frees;
  stats_.freed_bytes += bytes;
}

}  // namespace bitnet::gpu

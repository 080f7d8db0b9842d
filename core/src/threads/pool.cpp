#include "threads/pool.hpp"

namespace bitnet::threads {
namespace {

// About 20 us on the machines of 2024 to 2026: longer than the gap between two ops of a step, much
// shorter than a scheduler's time slice.
constexpr int spin_rounds = 2000;

thread_local bool inside_task = false;

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Returns the value once it differs from `old`.
uint32_t await_change(const std::atomic<uint32_t>& value, uint32_t old) {
  for (int i = 0; i < spin_rounds; ++i) {
    const uint32_t now = value.load(std::memory_order_acquire);
    if (now != old) return now;
    pause();
  }
  value.wait(old, std::memory_order_acquire);
  return value.load(std::memory_order_acquire);
}

}  // namespace

pool::pool(uint32_t width) : width_(width == 0 ? 1 : width) {
  workers_.reserve(width_ - 1);
  for (uint32_t i = 1; i < width_; ++i) workers_.emplace_back([this, i] { work(i); });
}

pool::~pool() {
  stop_ = true;
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
}

bitnet_status pool::run(uint32_t n, bitnet_task task, void* arg) {
  if (n == 0 || n > width_ || task == nullptr || inside_task) return BITNET_INVALID_ARGUMENT;
  const std::lock_guard lock(turn_);
  inside_task = true;
  if (n == 1) {
    task(arg, 0, 1);
    inside_task = false;
    return BITNET_OK;
  }
  task_ = task;
  arg_ = arg;
  n_ = n;
  pending_.store(width_ - 1, std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();

  task(arg, 0, n);
  inside_task = false;
  for (uint32_t left = pending_.load(std::memory_order_acquire); left != 0;)
    left = await_change(pending_, left);
  return BITNET_OK;
}

void pool::work(uint32_t index) {
  inside_task = true;
  uint32_t seen = 0;
  while (true) {
    seen = await_change(generation_, seen);
    if (stop_) return;
    if (index < n_) task_(arg_, index, n_);
    // Also those without a share answer, so that nobody reads the next run's fields too early.
    if (pending_.fetch_sub(1, std::memory_order_acq_rel) == 1) pending_.notify_one();
  }
}

}  // namespace bitnet::threads

#pragma once
// A number on whose change threads can wait: they spin for a while, then sleep in a futex.
// libstdc++'s std::atomic::wait yields four times before it sleeps, and each may give a time slice
// to a busy neighbour.
//
// The SDK has a copy for plugins, which share no code with the core.

#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <atomic>
#include <climits>
#include <cstdint>

namespace bitnet::threads {

class awaited {
 public:
  [[nodiscard]] uint32_t load() const noexcept { return value_.load(std::memory_order_acquire); }
  // Call it only while no thread waits.
  void reset(uint32_t value) noexcept { value_.store(value, std::memory_order_relaxed); }
  // Adds, wakes sleeping threads, and returns the sum.
  uint32_t add(uint32_t n) noexcept {
    const uint32_t sum = value_.fetch_add(n) + n;
    // Sequentially consistent on both sides: this thread sees the sleeper, or the sleeper the sum.
    if (sleepers_.load() != 0) wake();
    return sum;
  }
  // Returns the value when it differs from `old`; reads it `spins` times before it sleeps.
  uint32_t await_change(uint32_t old, uint32_t spins) noexcept {
    for (uint32_t i = 0; i < spins; ++i) {
      if (const uint32_t now = load(); now != old) return now;
      pause();
    }
    sleepers_.fetch_add(1);
    while (value_.load() == old) sleep(old);
    sleepers_.fetch_sub(1);
    return load();
  }

 private:
  static void pause() noexcept {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }
#if defined(__linux__)
  void sleep(uint32_t old) noexcept {
    syscall(SYS_futex, address(), FUTEX_WAIT_PRIVATE, old, nullptr, nullptr, 0);
  }
  void wake() noexcept { syscall(SYS_futex, address(), FUTEX_WAKE_PRIVATE, INT_MAX); }
  // The kernel reads these 32 bits.
  void* address() noexcept { return &value_; }
  static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));
#else
  void sleep(uint32_t old) noexcept { value_.wait(old); }
  void wake() noexcept { value_.notify_all(); }
#endif

  std::atomic<uint32_t> value_{0};
  std::atomic<uint32_t> sleepers_{0};
};

}  // namespace bitnet::threads

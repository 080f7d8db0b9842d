#pragma once
// Flags with which a caller cancels the work of a backend. The backend gets a token, which is the
// flag's address. Asking costs two atomic loads, and with a deadline a look at the clock.
//
// Owner    All flags, also released ones, are freed only with this object. So a late question with
//          an old token reads an unused or reused flag, but no freed memory. A caller of is_set()
//          passes only numbers from token_of().
// Threads  any.

#include <atomic>
#include <bit>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>

namespace bitnet {

class cancel_flags {
 public:
  using flag = std::atomic<bool>;
  using time_point = std::chrono::steady_clock::time_point;

  class give_back {
   public:
    explicit give_back(cancel_flags* to = nullptr) noexcept : to_(to) {}
    void operator()(flag* given) const noexcept { to_->take_back(given); }

   private:
    cancel_flags* to_;
  };
  // Must be destroyed before its cancel_flags.
  using owned = std::unique_ptr<flag, give_back>;

  cancel_flags() = default;
  cancel_flags(const cancel_flags&) = delete;
  cancel_flags& operator=(const cancel_flags&) = delete;
  ~cancel_flags() = default;

  // Makes a flag that is not set.
  [[nodiscard]] owned make() {
    const std::lock_guard lock(mutex_);
    flag* out = free_;
    if (out == nullptr) return owned(&all_.emplace_back().set, give_back(this));
    free_ = entry_of(out).next;
    out->store(false, std::memory_order_relaxed);
    return owned(out, give_back(this));
  }

  [[nodiscard]] static uint64_t token_of(const flag& of) noexcept {
    return std::bit_cast<uint64_t>(&of);
  }
  // From `at` on the flag counts as set; time_point::max(), the default: no deadline. `of` is a
  // flag from make().
  static void set_deadline(flag& of, time_point at) noexcept {
    entry_of(&of).deadline.store(at, std::memory_order_relaxed);
  }
  // Whether the flag of this token is set or its deadline has passed; false for token 0.
  [[nodiscard]] static bool is_set(uint64_t token) noexcept {
    if (token == 0) return false;
    const auto& of = *std::bit_cast<const entry*>(token);
    if (of.set.load(std::memory_order_relaxed)) return true;
    const time_point at = of.deadline.load(std::memory_order_relaxed);
    return at != time_point::max() && std::chrono::steady_clock::now() >= at;
  }

 private:
  struct entry {
    flag set{false};
    std::atomic<time_point> deadline{time_point::max()};
    flag* next = nullptr;  // the next in the list of released flags
  };
  // A flag is the first member of its entry.
  static entry& entry_of(flag* of) noexcept { return *reinterpret_cast<entry*>(of); }

  void take_back(flag* given) noexcept {
    const std::lock_guard lock(mutex_);
    given->store(false, std::memory_order_relaxed);
    set_deadline(*given, time_point::max());
    entry_of(given).next = free_;
    free_ = given;
  }

  std::mutex mutex_;  // guards what follows
  std::deque<entry> all_;
  flag* free_ = nullptr;
};

}  // namespace bitnet

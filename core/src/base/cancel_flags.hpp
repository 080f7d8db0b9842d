#pragma once
// Flags by which a caller ends work that a backend does, each with the token that the backend is
// given for it. The token is the flag's address, so asking is one atomic load.
//
// Owner    the flags lie here until this goes, also those that were given back: asking with the
//          token of work that has ended reads an unused flag, or that of later work, and no
//          freed memory. A caller of is_set() passes only numbers that token_of() returned.
// Threads  any.

#include <atomic>
#include <bit>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>

namespace bitnet {

class cancel_flags {
 public:
  using flag = std::atomic<bool>;

  class give_back {
   public:
    explicit give_back(cancel_flags* to = nullptr) noexcept : to_(to) {}
    void operator()(flag* given) const noexcept { to_->take_back(given); }

   private:
    cancel_flags* to_;
  };
  // Goes before the cancel_flags that it is of.
  using owned = std::unique_ptr<flag, give_back>;

  cancel_flags() = default;
  cancel_flags(const cancel_flags&) = delete;
  cancel_flags& operator=(const cancel_flags&) = delete;
  ~cancel_flags() = default;

  // One that is not set.
  [[nodiscard]] owned make() {
    const std::lock_guard lock(turn_);
    flag* out = free_;
    if (out == nullptr) return owned(&all_.emplace_back().set, give_back(this));
    free_ = entry_of(out).next;
    out->store(false, std::memory_order_relaxed);
    return owned(out, give_back(this));
  }

  [[nodiscard]] static uint64_t token_of(const flag& of) noexcept {
    return std::bit_cast<uint64_t>(&of);
  }
  // Whether the flag of this token is set; token 0 has none.
  [[nodiscard]] static bool is_set(uint64_t token) noexcept {
    return token != 0 && std::bit_cast<const flag*>(token)->load(std::memory_order_relaxed);
  }

 private:
  struct entry {
    flag set{false};
    flag* next = nullptr;  // of those that were given back
  };
  // A flag is the first member of its entry.
  static entry& entry_of(flag* of) noexcept { return *reinterpret_cast<entry*>(of); }

  void take_back(flag* given) noexcept {
    const std::lock_guard lock(turn_);
    given->store(false, std::memory_order_relaxed);
    entry_of(given).next = free_;
    free_ = given;
  }

  std::mutex turn_;  // guards what follows
  std::deque<entry> all_;
  flag* free_ = nullptr;
};

}  // namespace bitnet

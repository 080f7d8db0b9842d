#pragma once
// Which of two kernels with the same results takes less time on this machine, found on the work
// itself: both in turn until each was timed twice, then the faster one, and now and then the other.
// What counts is nearly the least time of each, since other programs that compute only add to it;
// nearly, so that one piece that had luck is forgotten.
//
// Threads  any, at once.

#include <atomic>
#include <chrono>
#include <cstdint>

namespace bitnet::cpu {

class faster {
 public:
  // Runs one of the two for a piece of so much work.
  template <class Usual, class Other>
  void run(uint64_t work, const Usual& usual, const Other& other) {
    const bool takes_other = is_other(pieces_.fetch_add(1, std::memory_order_relaxed));
    const auto before = std::chrono::steady_clock::now();
    if (takes_other)
      other();
    else
      usual();
    const std::chrono::duration<float, std::nano> took = std::chrono::steady_clock::now() - before;
    note(takes_other, took.count() / static_cast<float>(work));
  }

  // Whether piece number `piece`, from 0 on, is the other's.
  bool is_other(uint64_t piece) const {
    if (piece < 2 * timed) return piece % 2 == 1;
    return (piece % again == 0) != other_is_best();
  }

  // As far as is known. The usual one stays where they differ by what timings differ by.
  bool other_is_best() const {
    return least_[1].load(std::memory_order_relaxed) <
           least_[0].load(std::memory_order_relaxed) * worth;
  }

  // Nanoseconds for a unit of work.
  void note(bool of_other, float took) {
    auto& least = least_[of_other ? 1 : 0];
    const float before = least.load(std::memory_order_relaxed);
    least.store(took < before * forgets ? took : before * forgets, std::memory_order_relaxed);
  }

 private:
  // Pieces; `again` is odd, as pieces of one kind may come regularly.
  static constexpr uint64_t timed = 2, again = 31;
  static constexpr float worth = 0.97f, forgets = 1.02f;
  static constexpr float never = 1e30f;
  std::atomic<uint64_t> pieces_{0};
  std::atomic<float> least_[2]{never, never};
};

}  // namespace bitnet::cpu

#pragma once
// Which of two kernels with the same results takes less time on this machine, found on the work
// itself: both in turn until each was timed twice, then the faster one, and now and then the other.
// The least time of each counts, since others who compute only ever add to it.
//
// Threads  any, at once.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>

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
    // The usual one stays where they differ by what timings differ by.
    const bool best = least_[1].load(std::memory_order_relaxed) <
                      least_[0].load(std::memory_order_relaxed) * worth;
    return (piece % again == 0) != best;
  }

  // Nanoseconds for a unit of work.
  void note(bool of_other, float took) {
    auto& least = least_[of_other ? 1 : 0];
    float now = least.load(std::memory_order_relaxed);
    while (took < now && !least.compare_exchange_weak(now, took, std::memory_order_relaxed)) {
    }
  }

 private:
  static constexpr uint64_t timed = 2, again = 32;  // pieces
  static constexpr float worth = 0.97f;
  std::atomic<uint64_t> pieces_{0};
  std::atomic<float> least_[2]{std::numeric_limits<float>::max(),
                               std::numeric_limits<float>::max()};
};

}  // namespace bitnet::cpu

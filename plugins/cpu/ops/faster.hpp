#pragma once
// Finds which of two kernels with the same results takes less time on this machine, by timing the
// real work: both in turn until each was timed twice, then the faster one, and regularly the other.
// It compares the least time of each, since other programs only add time. The least time grows
// slowly, so a single lucky piece is forgotten.
//
// Threads  any, at once.

#include <atomic>
#include <chrono>
#include <cstdint>

namespace bitnet::cpu {

class faster {
 public:
  // Runs one of the two for a piece of `work` units.
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

  // True if piece number `piece` (from 0) runs the other kernel.
  bool is_other(uint64_t piece) const {
    if (piece < 2 * timed) return piece % 2 == 1;
    return (piece % again == 0) != other_is_best();
  }

  // By the times so far. The usual kernel stays if the difference is within the noise of timings.
  bool other_is_best() const {
    return least_[1].load(std::memory_order_relaxed) <
           least_[0].load(std::memory_order_relaxed) * worth;
  }

  // Records nanoseconds for a unit of work.
  void note(bool of_other, float took) {
    auto& least = least_[of_other ? 1 : 0];
    const float before = least.load(std::memory_order_relaxed);
    least.store(took < before * forgets ? took : before * forgets, std::memory_order_relaxed);
  }

 private:
  // Pieces that each kernel computes before one is preferred.
  static constexpr uint64_t timed = 2;
  // One of so many pieces is computed by the slower kernel: more often costs time, less often finds
  // a change later. It is odd, since pieces of one kind may come at an even period.
  static constexpr uint64_t again = 31;
  // The other kernel is preferred if it saves more than 3 %: less counts as noise of timings.
  static constexpr float worth = 0.97f;
  // A least time grows by at most 2 % with each piece. With more, disturbed pieces would change the
  // choice; with less, a lucky piece would decide for longer.
  static constexpr float forgets = 1.02f;
  static constexpr float never = 1e30f;  // nanoseconds for a unit, longer than any
  std::atomic<uint64_t> pieces_{0};
  std::atomic<float> least_[2]{never, never};
};

}  // namespace bitnet::cpu

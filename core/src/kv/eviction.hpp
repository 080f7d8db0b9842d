#pragma once
// Chooses the sequence that loses its KV blocks when the budget is spent.
//
//   lru   the least recently used sequence
//   fifo  the sequence that has held blocks for the longest time, however often it was used
//   lfu   the sequence with the fewest uses since it got blocks; among equals the least recently
//         used
//
// An evicted sequence that is used again counts as a new one.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace bitnet::kv {

enum class eviction : uint8_t { lru, fifo, lfu };

class eviction_order {
 public:
  explicit eviction_order(eviction policy) : policy_(policy) {}

  // Counts a use of the sequence; its first use adds it.
  void use(uint64_t sequence) {
    ++now_;
    const auto at = find(sequence);
    if (at == entries_.end()) {
      entries_.push_back({sequence, now_, now_, 1});
      return;
    }
    at->used = now_;
    ++at->uses;
  }

  void remove(uint64_t sequence) {
    if (const auto at = find(sequence); at != entries_.end()) entries_.erase(at);
  }

  // The next sequence to evict, among the sequences for which `may_go` is true.
  template <class F>
  [[nodiscard]] std::optional<uint64_t> victim(F may_go) const {
    const entry* worst = nullptr;
    for (const entry& e : entries_)
      if (may_go(e.sequence) && (worst == nullptr || goes_before(e, *worst))) worst = &e;
    return worst == nullptr ? std::nullopt : std::optional(worst->sequence);
  }

 private:
  struct entry {
    uint64_t sequence, came, used, uses;  // came, used: values of now_, which counts uses
  };

  [[nodiscard]] bool goes_before(const entry& a, const entry& b) const {
    if (policy_ == eviction::fifo) return a.came < b.came;
    if (policy_ == eviction::lfu && a.uses != b.uses) return a.uses < b.uses;
    return a.used < b.used;
  }
  std::vector<entry>::iterator find(uint64_t sequence) {
    return std::ranges::find(entries_, sequence, &entry::sequence);
  }

  eviction policy_;
  uint64_t now_ = 0;
  std::vector<entry> entries_;  // few: one for each session
};

}  // namespace bitnet::kv

#pragma once
// What this machine's memory gives to a program that only reads: the limit of generating tokens.

#include <cstdint>
#include <vector>

namespace bitnet::host {

// Memory that is read in a stream, larger than the caches.
class memory_ceiling {
 public:
  explicit memory_ceiling(uint64_t bytes);  // throws std::bad_alloc

  // Gigabytes (10^9 bytes) per second of `threads` threads that each read their part: the median of
  // five passes.
  [[nodiscard]] double measure(uint32_t threads) const;
  [[nodiscard]] uint64_t bytes() const { return words_.size() * sizeof(uint64_t); }

 private:
  std::vector<uint64_t> words_;
};

}  // namespace bitnet::host

#pragma once
// What this machine's memory gives to a program that only reads: the limit of generating tokens.

#include <cstdint>
#include <cstdlib>
#include <memory>

namespace bitnet::host {

// Memory that is read in a stream, larger than the caches, in large pages where there are any: as
// the kernels read their weights.
class memory_ceiling {
 public:
  explicit memory_ceiling(uint64_t bytes);  // throws std::bad_alloc

  // Gigabytes (10^9 bytes) per second of `threads` threads that each read their part: the best of
  // nine passes, since a limit is what a neighbour did not take away.
  // Throws std::system_error where the system makes no such thread.
  [[nodiscard]] double measure(uint32_t threads) const;
  [[nodiscard]] uint64_t bytes() const { return n_words_ * sizeof(uint64_t); }

 private:
  uint64_t n_words_;
  std::unique_ptr<uint64_t[], void (*)(void*)> words_;
};

}  // namespace bitnet::host

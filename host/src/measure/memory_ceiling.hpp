#pragma once
// Measures the bandwidth of this machine's memory for reading, which limits the generation of
// tokens.

#include <cstdint>
#include <cstdlib>
#include <memory>

namespace bitnet::host {

// Memory larger than the caches, in large pages if available, that is read as a stream, as kernels
// read their weights.
class memory_ceiling {
 public:
  explicit memory_ceiling(uint64_t bytes);  // throws std::bad_alloc

  // Gigabytes (10^9 bytes) per second of `threads` threads that each read their part. Takes the
  // best of nine passes, since other programs only slow it down. Throws std::system_error if a
  // thread cannot be created.
  [[nodiscard]] double measure(uint32_t threads) const;
  [[nodiscard]] uint64_t bytes() const { return n_words_ * sizeof(uint64_t); }

 private:
  uint64_t n_words_;
  std::unique_ptr<uint64_t[], void (*)(void*)> words_;
};

}  // namespace bitnet::host

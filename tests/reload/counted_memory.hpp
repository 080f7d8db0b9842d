#pragma once
// What this process holds, by counting: allocations that were not freed, mappings, descriptors,
// threads.

#include <cstdint>

namespace bitnet::test {

#ifdef BITNET_SANITIZED
inline constexpr bool counts_memory = false;  // a sanitizer has the allocator, and maps for itself
#else
inline constexpr bool counts_memory = true;
#endif

struct holdings {
  int64_t allocations = 0, bytes = 0;  // of the heap; 0 where memory is not counted
  int64_t mappings = 0, descriptors = 0, threads = 0;
  bool operator==(const holdings&) const = default;
};

holdings count_holdings();

}  // namespace bitnet::test

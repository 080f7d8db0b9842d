#pragma once
// Free memory of devices that share the memory of the CPU (Jetson, GB10). Their driver does not
// count memory that the kernel can reclaim, such as the page cache, so a model file that was just
// read would look like memory in use.

#include <cstdint>

namespace bitnet::cuda {

inline constexpr const char* usual_meminfo = "/proc/meminfo";

// Returns the bytes that the system can provide without swapping (MemAvailable); 0 if the file does
// not have them.
uint64_t available_bytes(const char* meminfo);

// Returns the free bytes of a device; `free` and `total` are the driver's numbers.
uint64_t free_bytes(bool integrated, uint64_t free, uint64_t total, const char* meminfo);

}  // namespace bitnet::cuda

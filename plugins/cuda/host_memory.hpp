#pragma once
// Free memory of devices whose memory is the host's (Jetson, GB10). The driver does not count what
// the system would give back, such as files that it keeps in memory: a model that was just read
// would look like memory that is taken.

#include <cstdint>

namespace bitnet::cuda {

inline constexpr const char* usual_meminfo = "/proc/meminfo";

// What the system can give without swapping (MemAvailable), in bytes; 0 where the file does not
// say.
uint64_t available_bytes(const char* meminfo);

// Of what the driver reports of a device.
uint64_t free_bytes(bool integrated, uint64_t free, uint64_t total, const char* meminfo);

}  // namespace bitnet::cuda

#pragma once
// The size of the last-level caches.

#include <cstdint>

namespace bitnet::cpu {

// Bytes of all last-level caches of this machine together, from the system's folder of CPUs;
// without that folder from the C library, else 32 MiB.
uint64_t last_level_cache_bytes(const char* cpus = "/sys/devices/system/cpu");

}  // namespace bitnet::cpu

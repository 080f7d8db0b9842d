#pragma once
// How much the caches hold that are nearest to the memory.

#include <cstdint>

namespace bitnet::cpu {

// Bytes of all last-level caches of this machine together, as the system's folder of CPUs reports;
// what the C library reports, or 32 MiB, where there is no such folder.
uint64_t last_level_cache_bytes(const char* cpus = "/sys/devices/system/cpu");

}  // namespace bitnet::cpu

#pragma once
// Kernels of one size of waves, compiled for this processor: a library for each size, which the
// stand-in opens.

#include <cstdint>

struct bitnet_waves_grid {
  unsigned int groups_x, groups_y, threads;
  uint64_t shared_bytes;
  const char* name;
};
extern "C" {
// Runs a kernel of this library, `joined` if that is what its value is. One at a time.
void bitnet_waves_run(void* kernel, const void* value, bool joined, const bitnet_waves_grid* how);
unsigned int bitnet_waves_lanes();
}

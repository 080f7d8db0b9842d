#pragma once
// A libamdhip64.so.7 that computes on this processor. It implements the calls that plugins/rocm
// makes and is strict about them: a handle that is not alive or of another device, memory that is
// not allocated, a code object for another target, something left over at the end of the process
// end it with a sentence. Tests put it where the loader finds it; it calls itself what it is.
//
// BITNET_STAND_IN  key=value[,key=value...]; where it is not set, a file libamdhip64.settings
//                  beside the runtime's has that, for processes that get no variables
//   targets            architectures of its devices, such as gfx1030/gfx90a:sramecc+:xnack-, which
//                      is the default; those before gfx10 have waves of 64
//   memory  1024       MiB of a device
//   init    0          what hipInit answers,
//   count   0          hipGetDeviceCount, and
//   pinned  0          hipHostMalloc
//   properties 0       1: hipGetDeviceProperties has no name of an architecture
//   wrong              the kernel of this name writes one wrong bit,
//   hangs              that of this name never ends, and
//   loses              that of this name loses the device
//   at_once 0          1: the launching thread computes, so that the number of calls never varies
//   fail    0          the so many-th call answers
//   with    0          this

#include <cstdint>
#include <string>
#include <vector>

extern "C" {
// For tests in the same process: the call that fails next counts from now on; 0: none.
void bitnet_stand_in_fail(uint64_t nth, int with);
uint64_t bitnet_stand_in_calls();                       // since then
uint64_t bitnet_stand_in_objects();                     // that are alive
const char* bitnet_stand_in_failed();                   // the call that failed last
uint64_t bitnet_stand_in_launches(const char* kernel);  // of the process, by its name
}

namespace stand_in {

struct settings {
  int init = 0, count = 0, pinned = 0, properties = 0, at_once = 0, with = 0;
  uint64_t memory_mib = 1024, fail = 0;
  std::vector<std::string> targets{"gfx1030", "gfx90a:sramecc+:xnack-"};
  std::string wrong, hangs, loses;
};
const settings& wanted();

}  // namespace stand_in

#pragma once
// A libcuda.so.1 that computes on this processor. It implements the calls that plugins/cuda makes
// and is strict about them: a handle that is not alive, memory that is not allocated, something
// left over when its context goes end the process with a sentence. Tests put it where the loader
// finds it; it calls itself what it is.
//
// BITNET_STAND_IN  key=value[,key=value...]; where it is not set, a file libcuda.settings beside
//                  the driver's has that, for processes that get no variables
//   version 13000      what the driver speaks
//   devices 1          how many there are
//   arch    90         their architecture
//   code    arch       the one whose instructions kernels have
//   mode    0          compute mode: 0 default, 2 prohibited, 3 exclusive
//   memory  1024       MiB of a device
//   init    0          what cuInit answers,
//   retain  0          cuDevicePrimaryCtxRetain, and
//   pinned  0          cuMemHostAlloc
//   beside  0          what a programmatic edge is answered, and
//   ready   0          a graph that has one, when it is instantiated, and
//   launch  0          when it is launched
//   processors 1       multiprocessors of a device
//   integrated 0       1: the memory of a device is the host's,
//   cached  0          of which so many MiB are taken, by files that can be read again
//   wrong_groups 0     1: products by warp groups are wrong
//   wrong              the kernel of this name writes one wrong bit,
//   wrong_from 0       but only in launches of at least so many groups in x,
//   hangs              that of this name never ends, and
//   loses              that of this name loses the device
//   lost_boxes 0       1: the engine that copies boxes of matrices brings none
//   backwards 0        1: the last group of a kernel runs first
//   at_once 0          1: the launching thread computes, so that the number of calls never varies
//   fail    0          the so many-th call answers
//   with    0          this

#include <cstdint>
#include <string>

extern "C" {
// For tests in the same process: the call that fails next counts from now on; 0: none.
void bitnet_stand_in_fail(uint64_t nth, int with);
uint64_t bitnet_stand_in_calls();      // since then
uint64_t bitnet_stand_in_objects();    // that are alive
const char* bitnet_stand_in_failed();  // the call that failed last
// Edges of the graph that was instantiated last: programmatic ones, or all others.
uint64_t bitnet_stand_in_edges(int programmatic);
// Its copies, or its kernels.
uint64_t bitnet_stand_in_nodes(int copies);
}

namespace stand_in {

struct settings {
  int version = 13000, devices = 1, arch = 90, code = 0, mode = 0, init = 0, retain = 0, with = 0,
      pinned = 0, beside = 0, ready = 0, launch = 0, at_once = 0, processors = 1, wrong_groups = 0,
      lost_boxes = 0, integrated = 0, cached_mib = 0, backwards = 0, wrong_from = 0;
  uint64_t memory_mib = 1024, fail = 0;
  std::string wrong, hangs, loses;
};
const settings& wanted();

}  // namespace stand_in

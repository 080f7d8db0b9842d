#pragma once
// Working only while no other process needs the machine.
//
// A probe may compile a driver's kernels for a minute on all CPUs. Programs that compute beside it
// must not become slower; and a probe that waits for a CPU is not slow by itself.

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <vector>

namespace bitnet::probe {

// All threads of a process and of the processes that it started.
[[nodiscard]] std::vector<pid_t> threads_below(pid_t process);

// The calling process, and what it starts from now on: SCHED_IDLE, nice 19, the idle class of disk
// access. Where the kernel shares CPUs between sessions, its session too, if it leads one.
void be_idle();
// Another process of this user, as it is now, and all below it. There is no way back.
void be_idle(pid_t process);

// How long a process was kept waiting for a CPU: the longest of its threads.
class waiting_for_cpu {
 public:
  // Counts from now on.
  void begin(pid_t process);
  // 0 where the kernel does not report it.
  [[nodiscard]] uint64_t ms(pid_t process) const;

 private:
  std::map<pid_t, uint64_t> before_ns_;  // of each thread that there was at the beginning
};

}  // namespace bitnet::probe

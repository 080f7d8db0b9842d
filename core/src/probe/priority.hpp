#pragma once
// Runs probes at idle priority.
//
// A probe may compile a driver's kernels for a minute on all CPUs, and must not slow down programs
// that compute. Time spent waiting for a CPU does not make a probe count as slow.

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <vector>

namespace bitnet::probe {

// All threads of a process and of its descendants.
[[nodiscard]] std::vector<pid_t> threads_below(pid_t process);

// Gives the calling process and its later children SCHED_IDLE, nice 19 and the idle class of disk
// access. If the kernel shares CPUs between sessions, also to its session if it leads one.
void be_idle();
// The same for another process of this user and its descendants. It cannot be undone.
void be_idle(pid_t process);

// Measures how long a process waited for a CPU: the maximum over its threads.
class waiting_for_cpu {
 public:
  // Starts counting.
  void begin(pid_t process);
  // 0 if the kernel does not report it.
  [[nodiscard]] uint64_t ms(pid_t process) const;

 private:
  std::map<pid_t, uint64_t> before_ns_;  // of each thread at the beginning
};

}  // namespace bitnet::probe

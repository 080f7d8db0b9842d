#pragma once
// The one set of threads that computes; owned by the host, lent to plugins through parallel_run.
//
// Workers spin for a short, bounded time for the next run and then sleep in a futex, so that a busy
// neighbour on the same core is not starved.

#include <cstdint>
#include <mutex>
#include <string_view>
#include <thread>
#include <vector>

#include "base/result.hpp"
#include "bitnet/abi/host.h"
#include "threads/awaited.hpp"

namespace bitnet::threads {

// CPUs by their numbers, ascending.
using cpu_list = std::vector<uint32_t>;

// The CPUs that the affinity of this thread allows.
cpu_list allowed_cpus();
// "0x5" is {0, 2}. BITNET_INVALID_ARGUMENT for what is no mask, names no CPU, or names one that
// this process may not use.
result<cpu_list> read_cpu_mask(std::string_view hexadecimal);
// "0-3,8"
std::string ranges(const cpu_list& cpus);

// Workers that are of use on these CPUs: one for each physical core, as far as sysfs tells, and no
// more than the cgroup's quota allows; at least 1.
uint32_t available(const cpu_list& cpus);
uint32_t available();  // on the allowed ones

inline constexpr uint32_t most_poll = 100;
inline constexpr uint32_t default_poll = 50;

struct pool_options {
  uint32_t poll =
      default_poll;  // how long a worker looks for work before it sleeps; 0 = not at all
  cpu_list cpus;     // that the workers run on; empty: where the system puts them
};

class pool {
 public:
  // width - 1 threads are started; the caller of run is the first, and is moved to `cpus` as well.
  explicit pool(uint32_t width, pool_options options = {});
  ~pool();
  pool(const pool&) = delete;
  pool& operator=(const pool&) = delete;

  [[nodiscard]] uint32_t width() const { return width_; }

  // bitnet_host_v0::parallel_run. Callers on several threads take turns. BITNET_INVALID_ARGUMENT
  // for n outside [1, width] and for a call from inside a task.
  bitnet_status run(uint32_t n, bitnet_task task, void* arg);

 private:
  void work(uint32_t index);
  void move_this_thread();

  const uint32_t width_;
  const uint32_t spins_;
  const cpu_list cpus_;
  const uint64_t id_;  // of this pool among all that ever were
  std::mutex turn_;    // one run at a time
  // Written by run before generation_ moves, read by workers after they saw it move.
  bitnet_task task_ = nullptr;
  void* arg_ = nullptr;
  uint32_t n_ = 0;
  bool stop_ = false;
  alignas(64) awaited generation_;
  alignas(64) awaited pending_;  // workers that have not finished this generation
  std::vector<std::jthread> workers_;
};

}  // namespace bitnet::threads

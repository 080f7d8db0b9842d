#pragma once
// The one set of threads that computes; owned by the host, lent to plugins through parallel_run.
//
// Workers spin for a short, bounded time for the next run and then sleep in a futex, so that a busy
// neighbour on the same core is not starved.

#include <atomic>
#include <cstdint>
#include <latch>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

#include "base/result.hpp"
#include "bitnet/abi/host.h"
#include "threads/awaited.hpp"
#include "threads/cpu_set.hpp"

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

// Workers that are of use on these CPUs: one for each physical core, as far as sysfs shows them,
// and no more than the cgroup's quota allows; at least 1.
uint32_t available(const cpu_list& cpus);
uint32_t available();  // on the allowed ones

inline constexpr uint32_t most_poll = 100;
inline constexpr uint32_t default_poll = 50;

struct pool_options {
  uint32_t poll =
      default_poll;  // how long a worker looks for work before it sleeps; 0 = not at all
  cpu_list cpus;     // that the workers run on; empty: where the system puts them
  // Of each worker the CPUs that it is kept to, within `cpus`; empty: none is. The caller of run is
  // kept there during the run only: what it starts otherwise does not inherit the place.
  std::vector<cpu_list> places{};
};

class pool {
 public:
  // width - 1 threads are started; the caller of run is the first, and is moved to `cpus` as well.
  // Where the system has fewer, the pool is smaller: see shortage().
  explicit pool(uint32_t width, pool_options options = {});
  ~pool();
  pool(const pool&) = delete;
  pool& operator=(const pool&) = delete;

  [[nodiscard]] uint32_t width() const { return width_; }
  // Why it is smaller than what was asked for.
  [[nodiscard]] const std::optional<failure>& shortage() const { return shortage_; }

  // bitnet_host_v0::parallel_run. Callers on several threads take turns. BITNET_INVALID_ARGUMENT
  // for n outside [1, width] and for a call from inside a task.
  bitnet_status run(uint32_t n, bitnet_task task, void* arg);

  // The CPUs that the system says each worker may run on. Of worker 0, which is the caller of run,
  // what it was kept to in the last run, or will be in the first.
  [[nodiscard]] std::vector<cpu_list> places() const;

 private:
  void start();
  void work(uint32_t index);
  void move_this_thread();
  void compute(uint32_t n, bitnet_task task, void* arg);

  uint32_t width_;  // only start() lowers it, and no worker reads it
  std::optional<failure> shortage_;
  const uint32_t spins_;
  const cpu_list cpus_;
  const std::vector<cpu_list> places_;
  const cpu_set caller_place_;               // the first of places_
  const uint64_t id_;                        // of this pool among all that ever were
  std::mutex turn_;                          // one run at a time
  cpu_set caller_before_;                    // where it was before the run
  std::atomic<bool> caller_refused_{false};  // the system did not let it to its place
  std::vector<int32_t> ids_;                 // of workers as the system counts, 0 for the caller
  mutable std::latch settled_;               // workers that have moved and noted their ids
  // Written by run before generation_ moves, read by workers after they saw it move.
  bitnet_task task_ = nullptr;
  void* arg_ = nullptr;
  uint32_t n_ = 0;
  bool stop_ = false;
  alignas(64) awaited generation_;
  alignas(64) awaited pending_;  // workers that have not finished this generation
  std::vector<std::jthread> workers_;
};

// While it lives, what this thread asks the host to run in parallel is run by `own`, for work that
// must not keep the threads of the runtime from other callers. One at a time for a thread.
class pool_of_thread {
 public:
  explicit pool_of_thread(pool& own) noexcept { here() = &own; }
  ~pool_of_thread() { here() = nullptr; }
  pool_of_thread(const pool_of_thread&) = delete;
  pool_of_thread& operator=(const pool_of_thread&) = delete;

  // nullptr: this thread has none of its own.
  [[nodiscard]] static pool* get() noexcept { return here(); }

 private:
  static pool*& here() noexcept;
};

}  // namespace bitnet::threads

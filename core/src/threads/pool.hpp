#pragma once
// The pool of compute threads. The host owns it; plugins use it through parallel_run.
//
// Workers spin for a short, limited time for the next run and then sleep in a futex, so that they
// do not starve other programs on the core.

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
// "0x5" is {0, 2}. BITNET_INVALID_ARGUMENT if it is no mask, has no CPU, or has one that this
// process may not use.
result<cpu_list> read_cpu_mask(std::string_view hexadecimal);
// "0-3,8"
std::string ranges(const cpu_list& cpus);

// Useful number of workers on these CPUs: one per physical core, as sysfs reports them, at most the
// cgroup's quota, at least 1.
uint32_t available(const cpu_list& cpus);
uint32_t available();  // on the allowed CPUs

inline constexpr uint32_t most_poll = 100;
inline constexpr uint32_t default_poll = 50;

struct pool_options {
  uint32_t poll = default_poll;  // how long a worker spins before it sleeps; 0: not at all
  cpu_list cpus;                 // for all workers; empty: any CPU
  // One per worker: the CPUs that it is pinned to, within `cpus`; empty: not pinned. The caller of
  // run is pinned only during the run, so that threads it starts later do not inherit it.
  std::vector<cpu_list> places{};
};

class pool {
 public:
  // Starts width - 1 threads; the caller of run is the first worker, and is moved to `cpus` as
  // well. If the system has fewer threads, the pool is smaller: see shortage().
  explicit pool(uint32_t width, pool_options options = {});
  ~pool();
  pool(const pool&) = delete;
  pool& operator=(const pool&) = delete;

  [[nodiscard]] uint32_t width() const { return width_; }
  // Why the pool is smaller than requested.
  [[nodiscard]] const std::optional<failure>& shortage() const { return shortage_; }

  // bitnet_host_v0::parallel_run. Concurrent callers take turns. BITNET_INVALID_ARGUMENT for n
  // outside [1, width] and for a call from inside a task.
  bitnet_status run(uint32_t n, bitnet_task task, void* arg);

  // The CPUs on which the system lets each worker run. Worker 0 is the caller of run: where it was
  // pinned in the last run, or will be in the first.
  [[nodiscard]] std::vector<cpu_list> places() const;

 private:
  void start();
  void work(uint32_t index);
  void move_this_thread();
  void compute(uint32_t n, bitnet_task task, void* arg);

  uint32_t width_;  // only start() lowers it; workers do not read it
  std::optional<failure> shortage_;
  const uint32_t spins_;
  const cpu_list cpus_;
  const std::vector<cpu_list> places_;
  const cpu_set caller_place_;               // the first of places_
  const uint64_t id_;                        // unique among all pools of the process
  std::mutex mutex_;                         // one run at a time
  cpu_set caller_before_;                    // its CPUs before the run
  std::atomic<bool> caller_refused_{false};  // the system refused to pin it
  std::vector<int32_t> ids_;                 // of workers in the system; 0 for the caller
  mutable std::latch settled_;               // workers that have moved and stored their ids
  // run writes it before it changes runs_begun_; workers read it after that.
  bitnet_task task_ = nullptr;
  void* arg_ = nullptr;
  uint32_t n_ = 0;
  bool stop_ = false;
  alignas(64) awaited runs_begun_;
  alignas(64) awaited pending_;  // workers that have not finished this run
  std::vector<std::jthread> workers_;
};

// While it lives, parallel_run on this thread uses `own`, for work that must not keep the runtime's
// threads from other callers. At most one per thread.
class pool_of_thread {
 public:
  explicit pool_of_thread(pool& own) noexcept { here() = &own; }
  ~pool_of_thread() { here() = nullptr; }
  pool_of_thread(const pool_of_thread&) = delete;
  pool_of_thread& operator=(const pool_of_thread&) = delete;

  // nullptr: this thread has no pool of its own.
  [[nodiscard]] static pool* get() noexcept { return here(); }

 private:
  static pool*& here() noexcept;
};

}  // namespace bitnet::threads

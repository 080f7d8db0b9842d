#pragma once
// The one set of threads that computes; owned by the host, lent to plugins through parallel_run.
//
// Workers spin for a short, bounded time for the next run and then sleep in a futex, so that a busy
// neighbour on the same core is not starved.

#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "bitnet/abi/host.h"

namespace bitnet::threads {

// Threads that this process may really use: CPU affinity and the cgroup's quota, at least 1.
uint32_t available();

class pool {
 public:
  explicit pool(uint32_t width);  // width - 1 threads are started; the caller of run is the first
  ~pool();
  pool(const pool&) = delete;
  pool& operator=(const pool&) = delete;

  [[nodiscard]] uint32_t width() const { return width_; }

  // bitnet_host_v0::parallel_run. Callers on several threads take turns. BITNET_INVALID_ARGUMENT
  // for n outside [1, width] and for a call from inside a task.
  bitnet_status run(uint32_t n, bitnet_task task, void* arg);

 private:
  void work(uint32_t index);

  const uint32_t width_;
  std::mutex turn_;  // one run at a time
  // Written by run before generation_ moves, read by workers after they saw it move.
  bitnet_task task_ = nullptr;
  void* arg_ = nullptr;
  uint32_t n_ = 0;
  bool stop_ = false;
  alignas(64) std::atomic<uint32_t> generation_{0};
  alignas(64) std::atomic<uint32_t> pending_{0};  // workers that have not finished this generation
  std::vector<std::jthread> workers_;
};

}  // namespace bitnet::threads

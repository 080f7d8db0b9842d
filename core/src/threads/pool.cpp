#include "threads/pool.hpp"

#include <sched.h>

#include <algorithm>

#include "threads/cpu_set.hpp"

namespace bitnet::threads {
namespace {

// One round is one `pause`, 20 to 50 ns on the machines of 2024 to 2026: the default of 2000 is
// longer than the gap between two steps and much shorter than a scheduler's time slice.
constexpr uint32_t rounds_per_poll = 40;

thread_local bool inside_task = false;
thread_local uint64_t moved_for = 0;  // pool::id_

uint64_t next_id() {
  static std::atomic<uint64_t> ids{0};
  return ++ids;
}

}  // namespace

pool::pool(uint32_t width, pool_options options)
    : width_(width == 0 ? 1 : width),
      spins_(rounds_per_poll * std::min(options.poll, most_poll)),
      cpus_(std::move(options.cpus)),
      id_(next_id()) {
  workers_.reserve(width_ - 1);
  for (uint32_t i = 1; i < width_; ++i) workers_.emplace_back([this, i] { work(i); });
}

pool::~pool() {
  stop_ = true;
  generation_.add(1);
}

// Once for each thread; CPUs that were taken away since are no reason not to compute.
void pool::move_this_thread() {
  if (cpus_.empty() || moved_for == id_) return;
  moved_for = id_;
  const cpu_set set(cpus_);
  (void)sched_setaffinity(0, set.bytes(), set.get());
}

bitnet_status pool::run(uint32_t n, bitnet_task task, void* arg) {
  if (n == 0 || n > width_ || task == nullptr || inside_task) return BITNET_INVALID_ARGUMENT;
  const std::lock_guard lock(turn_);
  move_this_thread();
  inside_task = true;
  if (n == 1) {
    task(arg, 0, 1);
    inside_task = false;
    return BITNET_OK;
  }
  task_ = task;
  arg_ = arg;
  n_ = n;
  pending_.reset(width_ - 1);
  generation_.add(1);

  task(arg, 0, n);
  inside_task = false;
  for (uint32_t left = pending_.load(); left != 0;) left = pending_.await_change(left, spins_);
  return BITNET_OK;
}

void pool::work(uint32_t index) {
  move_this_thread();
  inside_task = true;
  uint32_t seen = 0;
  while (true) {
    seen = generation_.await_change(seen, spins_);
    if (stop_) return;
    if (index < n_) task_(arg_, index, n_);
    // Also those without a share answer, so that nobody reads the next run's fields too early.
    pending_.add(uint32_t{0} - 1);
  }
}

}  // namespace bitnet::threads

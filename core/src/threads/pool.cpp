#include "threads/pool.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>

#include "base/new_thread.hpp"
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

bool move_to(const cpu_list& cpus) {
  const cpu_set set(cpus);
  return sched_setaffinity(0, cpu_set::bytes(), set.get()) == 0;
}

cpu_list cpus_of(pid_t thread) {
  const cpu_set set;
  cpu_list out;
  if (sched_getaffinity(thread, cpu_set::bytes(), set.get()) != 0) return out;
  for (uint32_t cpu = 0; cpu < most_cpus; ++cpu)
    if (set.has(cpu)) out.push_back(cpu);
  return out;
}

// Pins this thread to `place` while it lives, then restores `before`.
class kept {
 public:
  kept(const cpu_set& place, cpu_set& before) : before_(before) {
    moved_ = sched_getaffinity(0, cpu_set::bytes(), before_.get()) == 0 &&
             sched_setaffinity(0, cpu_set::bytes(), place.get()) == 0;
  }
  ~kept() {
    if (moved_) (void)sched_setaffinity(0, cpu_set::bytes(), before_.get());
  }
  kept(const kept&) = delete;
  kept& operator=(const kept&) = delete;
  [[nodiscard]] bool moved() const { return moved_; }

 private:
  cpu_set& before_;
  bool moved_ = false;
};

}  // namespace

pool::pool(uint32_t width, pool_options options)
    : width_(width == 0 ? 1 : width),
      spins_(rounds_per_poll * std::min(options.poll, most_poll)),
      cpus_(std::move(options.cpus)),
      places_(std::move(options.places)),
      caller_place_(places_.empty() ? cpu_list() : places_.front()),
      id_(next_id()),
      ids_(width_),
      settled_(width_ - 1) {
  workers_.reserve(width_ - 1);
  start();
}

// noexcept in effect: if this threw, the destructor, which stops the workers, would not run.
void pool::start() {
  const uint32_t wanted = width_;
  for (uint32_t i = 1; i < wanted; ++i) {
    auto made = new_thread([this, i] { work(i); });
    if (!made) {
      width_ = i;
      settled_.count_down(wanted - i);
      shortage_ = std::move(made.error());
      return;
    }
    workers_.push_back(std::move(*made));
  }
}

pool::~pool() {
  stop_ = true;
  runs_begun_.add(1);
}

// Once per thread; CPUs that were removed meanwhile are no reason to fail.
void pool::move_this_thread() {
  if (cpus_.empty() || moved_for == id_) return;
  moved_for = id_;
  (void)move_to(cpus_);
}

bitnet_status pool::run(uint32_t n, bitnet_task task, void* arg) {
  if (n == 0 || n > width_ || task == nullptr || inside_task) return BITNET_INVALID_ARGUMENT;
  const std::lock_guard lock(mutex_);
  move_this_thread();
  if (places_.empty()) {
    compute(n, task, arg);
    return BITNET_OK;
  }
  const kept here(caller_place_, caller_before_);
  caller_refused_.store(!here.moved(), std::memory_order_relaxed);
  compute(n, task, arg);
  return BITNET_OK;
}

void pool::compute(uint32_t n, bitnet_task task, void* arg) {
  inside_task = true;
  if (n == 1) {
    task(arg, 0, 1);
    inside_task = false;
    return;
  }
  task_ = task;
  arg_ = arg;
  n_ = n;
  pending_.reset(width_ - 1);
  runs_begun_.add(1);

  task(arg, 0, n);
  inside_task = false;
  for (uint32_t left = pending_.load(); left != 0;) left = pending_.await_change(left, spins_);
}

std::vector<cpu_list> pool::places() const {
  settled_.wait();
  std::vector<cpu_list> out;
  out.reserve(width_);
  const bool kept_there = !places_.empty() && !caller_refused_.load(std::memory_order_relaxed);
  out.push_back(kept_there ? places_.front() : cpus_.empty() ? cpus_of(0) : cpus_);
  for (uint32_t i = 1; i < width_; ++i) out.push_back(cpus_of(ids_[i]));
  return out;
}

void pool::work(uint32_t index) {
  if (!places_.empty())
    (void)move_to(places_[index]);
  else
    move_this_thread();
  ids_[index] = gettid();
  settled_.count_down();
  inside_task = true;
  uint32_t seen = 0;
  while (true) {
    seen = runs_begun_.await_change(seen, spins_);
    if (stop_) return;
    if (index < n_) task_(arg_, index, n_);
    // Workers without a share answer, too, so that no worker reads the next run's fields too early.
    pending_.add(uint32_t{0} - 1);
  }
}

pool*& pool_of_thread::here() noexcept {
  thread_local pool* own = nullptr;
  return own;
}

}  // namespace bitnet::threads

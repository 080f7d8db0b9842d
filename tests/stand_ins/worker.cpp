#include "worker.hpp"

#include <utility>

namespace stand_in {

worker::~worker() {
  {
    const std::scoped_lock held(lock_);
    ends_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

uint64_t worker::add(std::function<void()> job) {
  const std::scoped_lock held(lock_);
  if (at_once_) {
    if (!hangs_) job();
    if (!hangs_) ++done_;
    return ++given_;
  }
  if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
  jobs_.push_back(std::move(job));
  changed_.notify_all();
  return ++given_;
}

bool worker::is_done(uint64_t ticket) const {
  const std::scoped_lock held(lock_);
  return done_ >= ticket;
}

void worker::wait(uint64_t ticket) {
  std::unique_lock held(lock_);
  changed_.wait(held, [&] { return done_ >= ticket; });
}

void worker::wait_for_all() {
  std::unique_lock held(lock_);
  const uint64_t last = given_;  // others may go on giving jobs for ever
  changed_.wait(held, [&] { return done_ >= last; });
}

void worker::work() {
  std::unique_lock held(lock_);
  for (;;) {
    changed_.wait(held, [&] { return ends_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    const std::function<void()> job = std::move(jobs_.front());
    jobs_.pop_front();
    held.unlock();
    if (!hangs_) job();
    held.lock();
    if (hangs_) return;
    ++done_;
    changed_.notify_all();
  }
}

}  // namespace stand_in

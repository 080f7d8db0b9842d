#include "service/worker.hpp"

#include <csignal>
#include <utility>

namespace bitnet::host {

worker::worker(std::size_t capacity) : capacity_(capacity) {
  // The loop handles signals, so the thread is created with all of them blocked.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

worker::~worker() {
  {
    const std::lock_guard lock(guard_);
    ends_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

bool worker::post(std::function<void()> task) {
  {
    const std::lock_guard lock(guard_);
    if (ends_ || waiting_.size() >= capacity_) return false;
    waiting_.push_back(std::move(task));
  }
  changed_.notify_one();
  return true;
}

void worker::run() {
  for (;;) {
    std::function<void()> task;
    {
      std::unique_lock lock(guard_);
      changed_.wait(lock, [this] { return ends_ || !waiting_.empty(); });
      if (ends_) return;
      task = std::move(waiting_.front());
      waiting_.pop_front();
    }
    task();
  }
}

}  // namespace bitnet::host

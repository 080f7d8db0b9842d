#pragma once
// A thread for tasks that would block a service's loop: JSON, templates, tokens.

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace bitnet::host {

class worker {
 public:
  // `capacity`: most queued tasks.
  explicit worker(std::size_t capacity);
  // Waits for the running task and drops the queued ones.
  ~worker();
  worker(const worker&) = delete;
  worker& operator=(const worker&) = delete;

  // Any thread. False: the queue is full. Tasks run in order and must not throw.
  [[nodiscard]] bool post(std::function<void()> task);

 private:
  void run();

  std::mutex guard_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  std::size_t capacity_;
  bool ends_ = false;
  std::thread thread_;  // last: it reads the other members
};

}  // namespace bitnet::host

#pragma once
// One thread for what would keep the loop of a service from its connections: JSON, templates,
// tokens.

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace bitnet::host {

class worker {
 public:
  // Of at most `capacity` tasks that wait.
  explicit worker(std::size_t capacity);
  // Waits for the task that runs, and drops those that wait.
  ~worker();
  worker(const worker&) = delete;
  worker& operator=(const worker&) = delete;

  // Any thread. False: too many wait. Tasks run in order, and do not throw.
  [[nodiscard]] bool post(std::function<void()> task);

 private:
  void run();

  std::mutex guard_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  std::size_t capacity_;
  bool ends_ = false;
  std::thread thread_;  // last: it reads the others
};

}  // namespace bitnet::host

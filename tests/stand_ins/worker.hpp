#pragma once
// What the streams of a stand-in still have to do.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace stand_in {

// Everything that streams have to do, in one order and on one thread.
class worker {
 public:
  // `at_once`: the thread that adds a job runs it.
  explicit worker(bool at_once) : at_once_(at_once) {}
  ~worker();
  uint64_t add(std::function<void()> job);  // its ticket
  bool is_done(uint64_t ticket) const;
  void wait(uint64_t ticket);
  void wait_for_all();
  // The job that runs never ends; nor does any behind it.
  void hang() { hangs_ = true; }

 private:
  void work();
  const bool at_once_;
  std::atomic<bool> hangs_{false};
  mutable std::mutex lock_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  uint64_t given_ = 0, done_ = 0;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace stand_in

#include "process/orderly_end.hpp"

#include <fmt/core.h>

#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "basic/output.hpp"
#include "basic/result.hpp"
#include "log/log_queue.hpp"

namespace bitnet::host::orderly_end {
namespace {

std::atomic<bool> end_is_announced{false};

// Does not block on a full pipe, since the process is to end.
void say_without_waiting(std::string_view text) {
  pollfd room{STDERR_FILENO, POLLOUT, 0};
  if (::poll(&room, 1, 0) == 1 && (room.revents & POLLOUT) != 0)
    (void)write_all(STDERR_FILENO, text);
}

void on_exit_by_others() {
  if (end_is_announced) return;
  say_without_waiting(
      "bitnet: something in this process called exit() before the work was done, a backend or "
      "its driver; the output is not whole. `bitnet backends` names the backends; try "
      "another one with --device\n");
  settle_logs();
  _exit(exit_code::failure);
}

// Ends the process at a given time, unless cancelled before.
class end_guard {
 public:
  // Never destroyed, since exit handlers use it.
  static end_guard& only() {
    static end_guard& one = *new end_guard;
    return one;
  }
  void arm(std::string what, int exit_code) {
    const std::lock_guard lock(mutex_);
    what_ = std::move(what);
    exit_code_ = exit_code;
    due_ = std::chrono::steady_clock::now() + longest_end;
    armed_ = true;
    if (!started_) start();
    changed_.notify_all();
  }
  void disarm() {
    const std::lock_guard lock(mutex_);
    armed_ = false;
  }

 private:
  void start() try {
    std::thread([this] { watch(); }).detach();
    started_ = true;
  } catch (const std::exception&) {
    armed_ = false;  // no thread available: the end is not guarded
  }
  void watch() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return armed_; });
      changed_.wait_until(lock, due_);
      if (!armed_ || std::chrono::steady_clock::now() < due_) continue;
      say_without_waiting(
          fmt::format("bitnet: {} has not ended after {} s: a backend "
                      "or its driver hangs, and is left behind\n",
                      what_, longest_end.count()));
      settle_logs();
      _exit(exit_code_);
    }
  }

  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::string what_;
  std::chrono::steady_clock::time_point due_;
  int exit_code_ = exit_code::failure;
  bool armed_ = false, started_ = false;
};

std::atomic<int> closings_under_way{0};

}  // namespace

void expect() {
  (void)std::atexit(on_exit_by_others);
  (void)std::at_quick_exit(on_exit_by_others);
}

void announce(int exit_code) {
  end_is_announced = true;
  end_guard::only().arm("the end of the program", exit_code);
}

closing::closing(const char* what) {
  if (closings_under_way++ == 0)
    end_guard::only().arm(fmt::format("closing {}", what), exit_code::failure);
}

closing::~closing() {
  if (--closings_under_way == 0) end_guard::only().disarm();
}

}  // namespace bitnet::host::orderly_end

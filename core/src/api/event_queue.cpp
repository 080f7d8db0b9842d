#include "api/event_queue.hpp"

#include <fmt/core.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "base/new_thread.hpp"

namespace bitnet::api {
namespace {

// A wait of 0 ms would yield the CPU, which an event loop can use for other work.
void wait_for(std::condition_variable& changed, std::unique_lock<std::mutex>& lock,
              uint32_t timeout_ms, const auto& is_over) {
  if (timeout_ms != 0) changed.wait_for(lock, std::chrono::milliseconds(timeout_ms), is_over);
}

}  // namespace

result<std::shared_ptr<event_board>> event_board::make() {
  const int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (fd < 0)
    return fail(BITNET_OUT_OF_MEMORY,
                fmt::format("no descriptor for events can be made: {}", shortage_text(errno)));
  return std::shared_ptr<event_board>(new event_board(fd));
}

event_board::~event_board() {
  ::close(fd_);
}

void event_board::add(event_queue& q) {
  const std::lock_guard lock(mutex_);
  ready_.push_back(&q);
  if (!is_signalled_) {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t n = ::write(fd_, &one, sizeof one);
  }
  is_signalled_ = true;
  changed_.notify_one();
}

void event_board::remove(event_queue& q) {
  const std::lock_guard lock(mutex_);
  if (std::erase(ready_, &q) == 0 || !ready_.empty()) return;
  uint64_t ignored = 0;
  [[maybe_unused]] const ssize_t n = ::read(fd_, &ignored, sizeof ignored);
  is_signalled_ = false;
}

void* event_board::wait(uint32_t timeout_ms) {
  std::unique_lock lock(mutex_);
  wait_for(changed_, lock, timeout_ms, [&] { return !ready_.empty(); });
  is_signalled_ = false;
  if (ready_.empty()) return nullptr;
  // The other queues come first next time, whether or not this one is read.
  event_queue* const first = ready_.front();
  ready_.pop_front();
  ready_.push_back(first);
  return first->owner();
}

event_queue::event_queue(std::shared_ptr<event_board> board, std::size_t capacity,
                         uint32_t n_choices, void* owner)
    : board_(std::move(board)), capacity_(capacity), owner_(owner), open_choices_(n_choices) {}

event_queue::~event_queue() {
  close();
}

bool event_queue::offer(schedule::event&& e) {
  const std::lock_guard lock(mutex_);
  const bool is_end = e.what != schedule::event::kind::piece;
  if (is_end && open_choices_ > 0) --open_choices_;
  if (closed_) return true;
  if (!is_end && events_.size() >= capacity_) {
    was_full_ = true;
    return false;
  }
  events_.push_back(std::move(e));
  if (events_.size() == 1) board_->add(*this);
  changed_.notify_one();
  return true;
}

result<schedule::event> event_queue::next(uint32_t timeout_ms, bool& made_room) {
  std::unique_lock lock(mutex_);
  wait_for(changed_, lock, timeout_ms,
           [&] { return !events_.empty() || open_choices_ == 0 || closed_; });
  if (events_.empty()) {
    if (open_choices_ == 0)
      return fail(BITNET_NOT_FOUND, "every choice of the request has ended; no event follows");
    return fail(BITNET_TIMEOUT, fmt::format("no event has come within {} ms", timeout_ms));
  }
  schedule::event out = std::move(events_.front());
  events_.pop_front();
  if (events_.empty()) board_->remove(*this);
  // Only when half is empty: each wake of the scheduler costs as much as a few tokens.
  made_room = was_full_ && events_.size() <= capacity_ / 2;
  if (made_room) was_full_ = false;
  return out;
}

void event_queue::close() {
  const std::lock_guard lock(mutex_);
  if (closed_) return;
  closed_ = true;
  if (!events_.empty()) board_->remove(*this);
  events_.clear();
}

}  // namespace bitnet::api

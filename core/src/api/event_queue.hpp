#pragma once
// Events on their way from a scheduler to the readers of its requests.
//
// Threads any. The scheduler's thread never waits here.

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>

#include "base/result.hpp"
#include "schedule/request.hpp"

namespace bitnet::api {

class event_queue;

// Which queues have events, in the order in which they got their first; and a descriptor that can
// be read from while one has. Lives as long as a queue does.
class event_board {
 public:
  // BITNET_OUT_OF_MEMORY where the system has no descriptor left.
  static result<std::shared_ptr<event_board>> make();
  ~event_board();
  event_board(const event_board&) = delete;
  event_board& operator=(const event_board&) = delete;

  [[nodiscard]] int descriptor() const { return fd_; }

  // The owner of the first queue, after at most `timeout_ms`; nullptr: none has events.
  void* wait(uint32_t timeout_ms);

 private:
  friend event_queue;
  explicit event_board(int fd) : fd_(fd) {}
  void add(event_queue& q);
  void remove(event_queue& q);

  const int fd_;     // of an eventfd, not 0 while `ready_` has an element
  std::mutex turn_;  // guards what follows
  std::condition_variable changed_;
  std::deque<event_queue*> ready_;
  // The eventfd was written to since the last wait(). What comes later is written again: a reader
  // that leaves a queue unread sees the next one, where it watches for edges (EPOLLET).
  bool is_signalled_ = false;
};

// Of one request. The end of a choice is always taken; other events up to a number.
class event_queue final : public schedule::sink {
 public:
  // `owner`: what event_board::wait gives for it.
  event_queue(std::shared_ptr<event_board> board, std::size_t capacity, uint32_t n_choices,
              void* owner);
  ~event_queue() override;

  bool offer(schedule::event&& e) override;

  // BITNET_TIMEOUT, or BITNET_NOT_FOUND after the last end. Sets `made_room` where the queue
  // refused an event and has room again: the caller then calls scheduler::ready().
  result<schedule::event> next(uint32_t timeout_ms, bool& made_room);
  // There will be no reader any more: later events are dropped, and the board forgets this queue.
  void close();

  [[nodiscard]] void* owner() const { return owner_; }

 private:
  const std::shared_ptr<event_board> board_;
  const std::size_t capacity_;
  void* const owner_;
  std::mutex turn_;  // guards what follows; taken before the board's
  std::condition_variable changed_;
  std::deque<schedule::event> events_;
  uint32_t open_choices_;
  bool was_full_ = false, closed_ = false;
};

}  // namespace bitnet::api

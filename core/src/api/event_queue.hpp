#pragma once
// Queues of events from a scheduler to the readers of its requests.
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

// The queues that have events, in the order of their first one, and a descriptor that is readable
// while there are any. Each queue shares ownership.
class event_board {
 public:
  // BITNET_OUT_OF_MEMORY if no descriptor is available.
  static result<std::shared_ptr<event_board>> make();
  ~event_board();
  event_board(const event_board&) = delete;
  event_board& operator=(const event_board&) = delete;

  [[nodiscard]] int descriptor() const { return fd_; }

  // Waits at most `timeout_ms` for events; returns the owner of the first queue, or nullptr.
  void* wait(uint32_t timeout_ms);

 private:
  friend event_queue;
  explicit event_board(int fd) : fd_(fd) {}
  void add(event_queue& q);
  void remove(event_queue& q);

  const int fd_;      // an eventfd; not 0 while `ready_` has an element
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<event_queue*> ready_;
  // The eventfd was written since the last wait(). The next event after that writes it again, so a
  // reader that waits for edges (EPOLLET) and left a queue unread is woken.
  bool is_signalled_ = false;
};

// The events of one request. Ends of choices are always queued; other events up to `capacity`.
class event_queue final : public schedule::sink {
 public:
  // `owner`: what event_board::wait returns for this queue.
  event_queue(std::shared_ptr<event_board> board, std::size_t capacity, uint32_t n_choices,
              void* owner);
  ~event_queue() override;

  bool offer(schedule::event&& e) override;

  // BITNET_TIMEOUT, or BITNET_NOT_FOUND after the last end. Sets `made_room` if the queue had
  // rejected an event and has room again; the caller then calls scheduler::ready().
  result<schedule::event> next(uint32_t timeout_ms, bool& made_room);
  // Drops later events and removes the queue from the board.
  void close();

  [[nodiscard]] void* owner() const { return owner_; }

 private:
  const std::shared_ptr<event_board> board_;
  const std::size_t capacity_;
  void* const owner_;
  std::mutex mutex_;  // guards what follows; lock it before the board's
  std::condition_variable changed_;
  std::deque<schedule::event> events_;
  uint32_t open_choices_;
  bool was_full_ = false, closed_ = false;
};

}  // namespace bitnet::api

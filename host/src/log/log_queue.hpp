#pragma once
// Queues lines for one target: a file, standard error, or the journal.
//
// At first add() itself writes. After start(), a thread of the queue writes and add() never waits:
// if a disk, terminal or pipe blocks, the oldest lines are dropped and counted. Once the queue is
// half empty, a line reports their number.

#include <cstdint>
#include <functional>
#include <memory>
#include <thread>

#include "log/log_line.hpp"

namespace bitnet::host {

class log_queue {
 public:
  // Writes a line; may wait, must not throw. After start() only the queue's thread calls it.
  using writer = std::function<void(const log_line&)>;
  struct bounds {
    std::size_t lines = 4096;
    std::size_t bytes = std::size_t{1} << 20U;  // of the lines
  };

  explicit log_queue(writer write);
  log_queue(writer write, const bounds& most);
  ~log_queue();  // close()
  log_queue(const log_queue&) = delete;
  log_queue& operator=(const log_queue&) = delete;

  // Call it before other threads add lines. If no thread can be created, add() continues to write
  // itself.
  void start();
  // From any thread.
  void add(log_line line);
  // Writes the queued lines. It gives up if no line is written for a second, or after five seconds;
  // the thread is then detached with what its writer holds. Returns the number of unwritten lines.
  // Add no lines afterwards.
  uint64_t close();

 private:
  struct contents;
  static void write_all_of(const std::shared_ptr<contents>& of);

  std::shared_ptr<contents> contents_;
  std::thread thread_;
};

// Number of lines that all queues of this process have dropped.
[[nodiscard]] uint64_t n_log_lines_dropped();

// Waits until all queues of the process are empty, a second at most. For signal handlers and
// immediate exits: it takes no lock and allocates nothing.
void settle_logs() noexcept;
// Fatal signals first call settle_logs(), then end the process as they would have.
void settle_logs_on_fatal_signals();

}  // namespace bitnet::host

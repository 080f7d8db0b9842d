#pragma once
// Lines on the way to one place: a file, standard error, the journal.
//
// At first add() writes. Behind start() a thread of the queue writes, and add() never waits for it:
// a disk, a terminal or a pipe that takes nothing costs lines, and no time of those who add. The
// oldest lines are dropped then, and counted; a line with their number follows once the queue is
// half empty.

#include <cstdint>
#include <functional>
#include <memory>
#include <thread>

#include "log/log_line.hpp"

namespace bitnet::host {

class log_queue {
 public:
  // May wait, and throws nothing. Called by one thread at a time behind start().
  using writer = std::function<void(const log_line&)>;
  struct bounds {
    std::size_t lines = 4096;
    std::size_t bytes = std::size_t{1} << 20U;  // of the lines' texts
  };

  explicit log_queue(writer write);
  log_queue(writer write, const bounds& most);
  ~log_queue();  // close()
  log_queue(const log_queue&) = delete;
  log_queue& operator=(const log_queue&) = delete;

  // Before other threads add. Without a thread to be had, add() goes on to write.
  void start();
  // From any thread.
  void add(log_line line);
  // Writes what is there, unless the place takes nothing for a second, or not all within five: then
  // the thread is left behind, with what its writer holds. How many lines were not written. Nothing
  // is added any more.
  uint64_t close();

 private:
  struct contents;
  static void write_all_of(const std::shared_ptr<contents>& of);

  std::shared_ptr<contents> contents_;
  std::thread thread_;
};

// Lines that queues of this process have dropped.
[[nodiscard]] uint64_t n_log_lines_dropped();

// Waits until all queues of the process are empty, a second at most. For signal handlers and for
// ends at once: it takes no lock and no memory.
void settle_logs() noexcept;
// Signals that end the process do so behind settle_logs(), as they would have.
void settle_logs_on_fatal_signals();

}  // namespace bitnet::host

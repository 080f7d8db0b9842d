#pragma once
// Receipts of a server's answers, a file for each prompt with a line for each of its choices.
//
// A thread of the folder makes and signs them, and reads files for that. Handing one over never
// waits: where 256 wait already, and where one cannot be written, it is dropped and counted.
//
// Threads: the one that runs `io`, but for what says otherwise.

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "library/engine.hpp"
#include "serve/served_model.hpp"
#include "service/worker.hpp"

namespace bitnet::host {

class receipt_folder {
 public:
  // Of --receipts-dir; nullptr where it is not given. Exit code 2 for what is no folder that can
  // be written to. `in` and `io` outlive it, and the runtime that set_runtime() names.
  [[nodiscard]] static result<std::unique_ptr<receipt_folder>> open(const invocation& in,
                                                                    boost::asio::io_context& io);
  receipt_folder(const invocation& in, boost::asio::io_context& io, std::string folder,
                 std::size_t most_files);

  // Before the first answer.
  void set_runtime(bitnet_runtime* runtime) { runtime_ = runtime; }

  // A request whose choices have ended, and what it needs until its receipts are there.
  struct ended_request {
    request_handle request;
    uint32_t n_choices = 1;
    std::string id;  // of the answer; "chatcmpl-..."
    std::size_t prompt = 0;
    std::string model;
    std::shared_ptr<served_model> on;
    std::shared_ptr<void> open_work;  // a drain waits for it
  };
  void add(ended_request one);

  // Any thread.
  [[nodiscard]] uint64_t n_written() const { return n_written_; }
  [[nodiscard]] uint64_t n_dropped() const { return n_dropped_; }

 private:
  // The folder's thread.
  void write(const ended_request& one);
  [[nodiscard]] result<std::string> lines_of(const ended_request& one) const;
  void forget_oldest();
  void report(const std::string& why);

  const invocation& in_;
  boost::asio::io_context& io_;
  const std::string folder_;
  const std::size_t most_files_;
  bitnet_runtime* runtime_ = nullptr;
  std::atomic<uint64_t> n_written_{0}, n_dropped_{0};
  std::deque<std::string> files_;  // that are kept, the oldest first; the folder's thread
  std::string trouble_;            // that was reported last; the same
  worker worker_;                  // last: its tasks may use all of it
};

}  // namespace bitnet::host

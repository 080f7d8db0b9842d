#pragma once
// Receipts of a server's answers: a file per prompt, with a line per choice.
//
// The folder's thread makes and signs them, since that reads files, and writes them. add() never
// waits: a receipt is dropped and counted if 256 are queued or if it cannot be written.
//
// Threads: the one that runs `io`, unless stated otherwise.

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "serve/served_model.hpp"
#include "service/worker.hpp"
#include "session/engine.hpp"

namespace bitnet::host {

class receipt_folder {
 public:
  // Opens the folder of --receipts-dir; nullptr if it is not given. Exit code 2 if it is no folder
  // that can be written to. `in`, `io` and the runtime of set_runtime() outlive it.
  [[nodiscard]] static result<std::unique_ptr<receipt_folder>> open(const invocation& in,
                                                                    boost::asio::io_context& io);
  receipt_folder(const invocation& in, boost::asio::io_context& io, std::string folder,
                 std::size_t most_files);

  // Call it before the first answer.
  void set_runtime(bitnet_runtime* runtime) { runtime_ = runtime; }

  // A request whose choices have ended, and what its receipts need.
  struct ended_request {
    request_handle request;
    uint32_t n_choices = 1;
    std::string id;  // of the answer; "chatcmpl-..."
    std::size_t prompt = 0;
    std::string model;
    std::shared_ptr<served_model> on;
    std::shared_ptr<void> open_work;  // a drain waits for its release
  };
  void add(ended_request one);

  // Any thread.
  [[nodiscard]] uint64_t n_written() const { return n_written_; }
  [[nodiscard]] uint64_t n_dropped() const { return n_dropped_; }

 private:
  // On the folder's thread:
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
  std::deque<std::string> files_;  // receipt files, oldest first; the folder's thread
  std::string trouble_;            // last reported reason; the folder's thread
  worker worker_;                  // last: its tasks use all other members
};

}  // namespace bitnet::host

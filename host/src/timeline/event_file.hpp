#pragma once
// A file of events in the array form of the Trace Event Format, which Perfetto and chrome://tracing
// open: "[", then an event a line. The end of the array may be missing, so what a killed program
// leaves can be opened.
//
// Memory   64 KiB of events that are not written yet; they are written when that is full, and each
//          quarter of a second while events come. Only whole events are written.
// Size     at most as many bytes as were asked for. What comes behind them is dropped and counted;
//          an event where that begins, and one at the end of the file, say so.
// Threads  any.

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "files/descriptor.hpp"
#include "result.hpp"

namespace bitnet::host::timeline {

class event_file {
 public:
  static constexpr uint64_t least_bytes = 16384;  // of a file

  // Exit code 2 for a path that cannot be written, or that has something which is no trace.
  static result<std::unique_ptr<event_file>> open(const std::string& path, uint64_t most_bytes);
  event_file(const event_file&) = delete;
  event_file& operator=(const event_file&) = delete;

  // A JSON object without line ends.
  void add(std::string_view event);
  // One that comes too late to be kept.
  void drop();
  // Writes what is left, then how many events were dropped, and the end of the array. Exit code 1
  // where something could not be written.
  result<void> finish();

 private:
  event_file(std::string path, files::descriptor file, uint64_t most_bytes);
  void append(std::string_view event);
  void append_end();
  void flush();

  const std::string path_;
  const uint64_t most_bytes_;
  std::mutex turn_;  // guards what follows
  files::descriptor file_;
  std::string waiting_;     // not written yet
  uint64_t bytes_ = 0;      // of the file, with those
  uint64_t n_waiting_ = 0;  // events
  uint64_t n_written_ = 0, n_dropped_ = 0;
  bool is_full_ = false;  // the event that says so is in the file
  int error_ = 0;         // of the first write that failed
  std::chrono::steady_clock::time_point flushed_;
};

}  // namespace bitnet::host::timeline

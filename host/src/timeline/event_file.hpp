#pragma once
// A file in the array form of the Trace Event Format, which Perfetto and chrome://tracing open:
// "[", then an event per line. The array's end may be missing, so the file of a killed program can
// be opened.
//
// Memory   a buffer of 64 KiB, written when it is full and each quarter of a second while events
//          come. Only complete events are written.
// Size     at most as many bytes as requested. Later events are dropped and counted; an event marks
//          where that begins, and one at the end of the file has the number.
// Threads  any.

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "basic/result.hpp"
#include "files/descriptor.hpp"

namespace bitnet::host::timeline {

class event_file {
 public:
  static constexpr uint64_t least_bytes = 16384;  // smallest allowed limit of a file

  // Exit code 2 for a path that cannot be written or has contents that are not a trace.
  static result<std::unique_ptr<event_file>> open(const std::string& path, uint64_t most_bytes);
  event_file(const event_file&) = delete;
  event_file& operator=(const event_file&) = delete;

  // `event`: a JSON object without newlines.
  void add(std::string_view event);
  // Counts an event as dropped.
  void drop();
  // Writes the remaining events, the number of dropped ones, and the array's end. Exit code 1 if
  // something could not be written.
  result<void> finish();

 private:
  event_file(std::string path, files::descriptor file, uint64_t most_bytes);
  void append(std::string_view event);
  void append_end();
  void flush();

  const std::string path_;
  const uint64_t most_bytes_;
  std::mutex mutex_;  // guards the members below
  files::descriptor file_;
  std::string waiting_;     // not yet written
  uint64_t bytes_ = 0;      // of the file, including waiting_
  uint64_t n_waiting_ = 0;  // events
  uint64_t n_written_ = 0, n_dropped_ = 0;
  bool is_full_ = false;  // the event that marks dropping is written
  int error_ = 0;         // errno of the first failed write
  std::chrono::steady_clock::time_point flushed_;
};

}  // namespace bitnet::host::timeline

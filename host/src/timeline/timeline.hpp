#pragma once
// `--trace`: the library's reports about its steps, as events of the Trace Event Format.
//
// Tracks   "host threads" (pid 1) has a track per thread that computes or samples, with measured
//          waits. "devices" (pid 2) has a track per device of each session or scheduler: its steps
//          as the host saw them, and at the end of each step the sums of its kernels, without a
//          duration.
// Threads  any.

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "basic/result.hpp"
#include "bitnet/bitnet.h"
#include "timeline/event_file.hpp"

namespace bitnet::host::timeline {

class timeline {
 public:
  // Exit code 2 as in event_file::open(). `version`: the program's.
  static result<std::unique_ptr<timeline>> open(const std::string& path, uint64_t most_bytes,
                                                std::string_view version);

  // `user` is a timeline.
  static void on_event(void* user, const bitnet_trace_event* event);
  void note(const bitnet_trace_event& event);
  // Call it when no event can come any more.
  result<void> finish() { return file_->finish(); }

 private:
  explicit timeline(std::unique_ptr<event_file> to) : file_(std::move(to)) {}
  void begin(std::string_view version);
  bool name_thread(int64_t thread);
  int64_t device_track(std::string_view device, uint64_t runner);  // 0: there are too many tracks

  const std::unique_ptr<event_file> file_;
  std::mutex mutex_;  // guards the members below
  std::set<int64_t> threads_;
  std::map<std::pair<std::string, uint64_t>, int64_t> devices_;
};

}  // namespace bitnet::host::timeline

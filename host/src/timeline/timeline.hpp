#pragma once
// `--trace`: what the library reports of its steps, as events of the Trace Event Format.
//
// Tracks   "host threads" (pid 1) has a track for each thread that computes or samples: what it
//          waited for, as it was measured. "devices" (pid 2) has one for each device of each
//          session or scheduler: its steps as the host saw them, and at the end of each, without a
//          duration, the sums of its kernels.
// Threads  any.

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "bitnet/bitnet.h"
#include "result.hpp"
#include "timeline/event_file.hpp"

namespace bitnet::host::timeline {

class timeline {
 public:
  // Exit code 2 as event_file::open(). `version` is the program's.
  static result<std::unique_ptr<timeline>> open(const std::string& path, uint64_t most_bytes,
                                                std::string_view version);

  // `user` is a timeline.
  static void on_event(void* user, const bitnet_trace_event* event);
  void note(const bitnet_trace_event& event);
  // No event comes any more.
  result<void> finish() { return file_->finish(); }

 private:
  explicit timeline(std::unique_ptr<event_file> to) : file_(std::move(to)) {}
  void begin(std::string_view version);
  bool name_thread(int64_t thread);
  int64_t device_track(std::string_view device, uint64_t runner);  // 0: there are too many

  const std::unique_ptr<event_file> file_;
  std::mutex turn_;  // guards what follows
  std::set<int64_t> threads_;
  std::map<std::pair<std::string, uint64_t>, int64_t> devices_;
};

}  // namespace bitnet::host::timeline

#pragma once
// What a plugin's call must leave as it is. A change is undone, and reported once.
//
// Of the calling thread: the floating-point control word and the blocked signals. They cost a few
// instructions and two short calls of the kernel, so each step is guarded. Of the process: working
// folder and mask of modes, which cost more calls; only what happens once per load or session is
// guarded, and no longer than it takes: what another thread changes meanwhile cannot be
// distinguished from it. What cannot be put back for others (handlers, environment, locale) the
// probe looks at.

#include <csignal>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "bitnet/abi/host.h"
#include "plugin/loading/host_services.hpp"
#include "plugin/trust/trust.hpp"

namespace bitnet::plugin {

// What a backend did that was undone. Each breach is reported once. Any thread.
class complaints {
 public:
  // `host` outlives it.
  complaints(host_services& host, std::string name) : host_(host), name_(std::move(name)) {}
  // "changed the working folder"
  void note(const char* what);

 private:
  host_services& host_;
  const std::string name_;
  std::mutex turn_;  // guards reported_
  std::set<std::string> reported_;
};

// The child of a probe wants to see what was changed, so it puts nothing back. Any thread.
void leave_state_alone();

// The control word of floating-point arithmetic of this thread, without what happened so far.
[[nodiscard]] uint64_t floating_point_modes();
void set_floating_point_modes(uint64_t modes);

class kept_thread {
 public:
  explicit kept_thread(complaints& to);
  ~kept_thread();
  kept_thread(const kept_thread&) = delete;
  kept_thread& operator=(const kept_thread&) = delete;

 private:
  complaints& to_;
  const uint64_t modes_;
  sigset_t blocked_;
};

class kept_process {
 public:
  explicit kept_process(std::shared_ptr<complaints> to);
  ~kept_process();
  kept_process(const kept_process&) = delete;
  kept_process& operator=(const kept_process&) = delete;

 private:
  const std::shared_ptr<complaints> to_;
  const kept_thread thread_;
  file_descriptor folder_;
  uint64_t device_ = 0, inode_ = 0;  // of the folder
  long mask_ = -1;                   // of modes; -1: the kernel does not report it
};

// A plugin's task as one of the host's own, on whose threads floating-point modes stay.
struct kept_task {
  bitnet_task task;
  void* arg;
};
void run_kept(void* kept, uint32_t index, uint32_t n);

}  // namespace bitnet::plugin

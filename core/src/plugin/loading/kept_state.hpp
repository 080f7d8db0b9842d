#pragma once
// Restores state that a plugin's call must not change, and reports a change once.
//
// Thread   the floating-point control word and the blocked signals. Guarding them takes a few
//          instructions and two short system calls, so every step is guarded.
// Process  working folder and umask. Guarding them takes more system calls, and a change by another
//          thread of the program would look like one by the plugin. So only short calls that occur
//          once per load or session are guarded.
// Probe    checks the state that cannot be restored safely: handlers, environment, locale.

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

// The breaches of a backend. Each is reported once. Any thread.
class complaints {
 public:
  // `host` outlives this object.
  complaints(host_services& host, std::string name) : host_(host), name_(std::move(name)) {}
  // Reports a breach such as "changed the working folder", once.
  void note(const char* what);

 private:
  host_services& host_;
  const std::string name_;
  std::mutex mutex_;  // guards reported_
  std::set<std::string> reported_;
};

// Lets changes stay, for the probe's child, which looks for them. Any thread.
void leave_state_alone();

// The floating-point control word of this thread, without its exception flags.
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
  long mask_ = -1;                   // the umask; -1: the kernel does not report it
};

// Wraps a plugin's task so that floating-point modes of the host's threads are kept.
struct kept_task {
  bitnet_task task;
  void* arg;
};
void run_kept(void* kept, uint32_t index, uint32_t n);

}  // namespace bitnet::plugin

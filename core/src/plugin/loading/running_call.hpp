#pragma once
// Which slot of a plugin runs, for whoever has to tell of a crash in it: the child that probes,
// which calls one at a time. In any other process a call costs a look at a constant of the process
// more, and writes nothing that other threads would wait for.

#include <atomic>

namespace bitnet::plugin {

// Set once, before the first call, by the child that probes.
inline bool notes_running_slot = false;

inline std::atomic<const char*> running_slot{nullptr};  // of static storage; nullptr: none

class running_call {
 public:
  explicit running_call(const char* slot)
      : before_(notes_running_slot ? running_slot.exchange(slot) : nullptr) {}
  ~running_call() {
    if (notes_running_slot) running_slot = before_;
  }
  running_call(const running_call&) = delete;
  running_call& operator=(const running_call&) = delete;

 private:
  const char* before_;
};

}  // namespace bitnet::plugin

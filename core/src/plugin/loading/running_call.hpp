#pragma once
// The slot of a plugin that runs. The child that probes calls one slot at a time, and its report of
// a crash names that slot. Every other process only reads a flag here, which never changes.

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

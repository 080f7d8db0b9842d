#pragma once
// The plugin slot that is running. The probe's child calls one slot at a time, and its report of a
// crash names that slot. In other processes the flag below stays false.

#include <atomic>

namespace bitnet::plugin {

// The probe's child sets it before its first call.
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

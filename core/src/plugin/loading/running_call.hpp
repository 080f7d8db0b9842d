#pragma once
// Which slot of a plugin runs, for whoever has to tell of a crash in it: the child that probes,
// which calls one at a time.

#include <atomic>

namespace bitnet::plugin {

inline std::atomic<const char*> running_slot{nullptr};  // of static storage; nullptr: none

class running_call {
 public:
  explicit running_call(const char* slot) : before_(running_slot.exchange(slot)) {}
  ~running_call() { running_slot = before_; }
  running_call(const running_call&) = delete;
  running_call& operator=(const running_call&) = delete;

 private:
  const char* before_;
};

}  // namespace bitnet::plugin

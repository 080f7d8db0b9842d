#pragma once
// Guards the objects of bitnet.h against calls at the same time.
//
// A session and a trial belong to one call at a time: a second one, from another thread or from a
// callback of the first, is rejected. A call that opens or moves an object locks the runtime shared
// (class steady); a call that replaces a backend waits until no such lock is held.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <shared_mutex>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace bitnet::api {

// The state of an object that belongs to one call at a time.
class one_call {
 public:
  // False while another call has it.
  [[nodiscard]] bool enter() noexcept {
    state expected = state::idle;
    return at_.compare_exchange_strong(expected, state::working, std::memory_order_acquire);
  }
  // Returns false if the object was closed during the call: the caller then destroys it.
  [[nodiscard]] bool leave() noexcept {
    state expected = state::working;
    return at_.compare_exchange_strong(expected, state::idle, std::memory_order_release);
  }
  // Returns true if the caller destroys the object; false: the running call will.
  [[nodiscard]] bool close() noexcept {
    state expected = state::idle;
    while (!at_.compare_exchange_weak(expected,
                                      expected == state::idle ? state::closed : state::closing,
                                      std::memory_order_acq_rel)) {
    }
    return expected == state::idle;
  }

 private:
  enum class state : uint8_t { idle, working, closing, closed };
  std::atomic<state> at_{state::idle};
};

// Keeps an object for one call. The object has a member `calls`, a one_call.
template <class Object>
class call_guard {
 public:
  static result<call_guard> take(Object& object, const char* what) {
    if (object.calls.enter()) return call_guard(&object);
    return fail(BITNET_BUSY,
                fmt::format("the {0} is at work for another call, of another thread or of the one "
                            "whose callback this is; wait until that has returned, or open "
                            "another {0}",
                            what));
  }
  call_guard(call_guard&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  call_guard& operator=(call_guard&&) = delete;
  ~call_guard() {
    if (object_ == nullptr) return;
    object_->at_end_of_call();
    if (!object_->calls.leave()) delete object_;
  }

 private:
  explicit call_guard(Object* object) : object_(object) {}
  Object* object_;
};

// Holds a runtime's lock shared, once per thread: a callback of such a call may make calls that
// lock it again, which a shared_mutex does not allow.
class steady {
 public:
  explicit steady(std::shared_mutex& lock) : lock_(lock), outer_(!held_here(lock)) {
    if (!outer_) return;
    held().push_back(&lock_);
    lock_.lock_shared();
  }
  ~steady() {
    if (!outer_) return;
    lock_.unlock_shared();
    std::erase(held(), &lock_);
  }
  steady(const steady&) = delete;
  steady& operator=(const steady&) = delete;

  // Whether a call on this thread holds it.
  [[nodiscard]] static bool held_here(const std::shared_mutex& lock) {
    return std::ranges::find(held(), &lock) != held().end();
  }

 private:
  static std::vector<const std::shared_mutex*>& held() {
    thread_local std::vector<const std::shared_mutex*> locks;
    return locks;
  }

  std::shared_mutex& lock_;
  const bool outer_;
};

}  // namespace bitnet::api

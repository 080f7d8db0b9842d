#pragma once
// A pool of events: a submission takes one and returns it once its end was seen. Threads: take()
// and the return of an event come from any thread.

#include <memory>
#include <mutex>
#include <vector>

#include "context.hpp"

namespace bitnet::level_zero {

class events {
 public:
  // With `timed`, events record how long a command took.
  events(const context& c, bool timed) noexcept : context_(c), timed_(timed) {}
  ~events();
  events(const events&) = delete;
  events& operator=(const events&) = delete;

  // Takes an event that is not signalled.
  bitnet_status take(ze_event_handle_t& out, const sdk::reporter& report);
  void give(ze_event_handle_t event) noexcept;

 private:
  bitnet_status grow(const sdk::reporter& report);

  const context& context_;
  const bool timed_;
  std::mutex lock_;
  std::vector<ze_event_pool_handle_t> pools_;
  std::vector<ze_event_handle_t> all_, free_;
};

// An event of the pool; the destructor returns it.
class lent_event {
 public:
  explicit lent_event(events& from) noexcept : from_(from) {}
  ~lent_event() {
    if (handle) from_.give(handle);
  }
  lent_event(const lent_event&) = delete;
  lent_event& operator=(const lent_event&) = delete;
  bitnet_status take(const sdk::reporter& report) { return from_.take(handle, report); }

  ze_event_handle_t handle = nullptr;

 private:
  events& from_;
};

}  // namespace bitnet::level_zero

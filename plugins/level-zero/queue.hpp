#pragma once
// Submissions in order, and how far they have come: each ends with a barrier that signals an event.
// Threads: submit() comes from one at a time, wait() and poll() from any.

#include <list>
#include <memory>
#include <mutex>

#include "events.hpp"

namespace bitnet::level_zero {

class queue final : public gpu::queue {
 public:
  explicit queue(const context& c) noexcept : context_(c), events_(c, false) {}
  ~queue() override;
  queue(const queue&) = delete;
  queue& operator=(const queue&) = delete;
  bitnet_status open(const sdk::reporter& report) {
    return context_.make_list(false, list_, report);
  }

  bitnet_status submit(gpu::recording& work, uint64_t value, const sdk::reporter& report) override;
  bitnet_status wait(uint64_t value, uint64_t timeout_ns, const sdk::reporter& report) override;
  bitnet_status poll(uint64_t& value, const sdk::reporter& report) override;

 private:
  struct pending {
    uint64_t value;
    std::shared_ptr<lent_event> done;
  };
  // What is appended from now on comes after all of the list; `done` is signalled behind that.
  ze_result_t end_with(ze_event_handle_t done) const;
  // Takes what is done off the list. The caller holds the lock.
  void look();
  void note(const pending& one, ze_result_t result);
  bitnet_status lost(const sdk::reporter& report) const;

  const context& context_;
  events events_;  // outlives what is pending
  ze_command_list_handle_t list_ = nullptr;
  std::mutex lock_;
  std::list<pending> pending_;
  uint64_t reached_ = 0, submitted_ = 0;
  ze_result_t failure_ = ZE_RESULT_SUCCESS;  // of the first step that failed: none after it counts
};

}  // namespace bitnet::level_zero

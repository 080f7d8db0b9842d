#pragma once
// Submissions in order, and their progress: each ends with a barrier that signals an event.
// Threads: one thread at a time calls submit(); any thread calls wait() and poll().

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
  // Commands appended later run after all commands of the list; then `done` is signalled.
  ze_result_t end_with(ze_event_handle_t done) const;
  // Removes finished submissions from the list. The caller holds the lock.
  void look();
  void note(const pending& one, ze_result_t result);
  bitnet_status lost(const sdk::reporter& report) const;

  const context& context_;
  events events_;  // outlives the pending submissions
  ze_command_list_handle_t list_ = nullptr;
  std::mutex lock_;
  std::list<pending> pending_;
  uint64_t reached_ = 0, submitted_ = 0;
  ze_result_t failure_ = ZE_RESULT_SUCCESS;  // of the first failed step; later steps do not count
};

}  // namespace bitnet::level_zero
